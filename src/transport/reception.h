// New connections to a publisher or to a router's front-end port, until the peer has passed the handshake and sent its
// request.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "base/log.h"
#include "transport/control_socket.h"
#include "transport/handshake.h"

namespace rodeo::transport {

/// Counts of peers that were turned away or cut off, and of the usual reasons.
struct Refusals {
  std::uint64_t peers = 0;
  std::uint64_t version = 0;     ///< the peer speaks another version
  std::uint64_t secret = 0;      ///< the peer has no secret, or another one
  std::uint64_t unreadable = 0;  ///< a message cannot be read, or has no place

  /// One refusal. `code`: of the error that the peer receives.
  static Refusals of(std::string_view code);
  Refusals& operator+=(const Refusals& more);
  /// Adds them to the counters of the publisher or service.
  template <typename Counter>
  void count(base::CounterBlock<Counter>& counters) const {
    counters.add(Counter::refused_peers, peers);
    counters.add(Counter::refused_version, version);
    counters.add(Counter::refused_secret, secret);
    counters.add(Counter::refused_unreadable, unreadable);
  }
};

class Reception {
 public:
  /// Called with a new connection and its first message. It takes the socket; on an error it leaves the socket, and the peer
  /// gets the reason.
  using Admit = std::function<Result<void>(ControlSocket&, formats::ControlMessage)>;

  /// `secret`: empty if none is required. `publisher`: its name, for the log.
  Reception(ControlListener listener, std::uint64_t instance, std::string secret, std::string publisher);

  std::uint16_t port() const { return listener_.port(); }

  /// Accepts new connections, up to a limit at a time, and reads from each. Returns the refusals, those after ten seconds of
  /// silence included. Does not block.
  Refusals greet(std::uint64_t now_ns, const Admit& admit);

 private:
  struct Guest {
    ControlSocket socket;
    Handshake handshake;
    std::uint64_t since_ns = 0;
  };
  /// False: this is no longer a guest.
  bool listen_to(Guest& guest, std::uint64_t now_ns, const Admit& admit, Refusals& refusals);
  void refuse(Guest& guest, const Error& why, Refusals& refusals);

  ControlListener listener_;
  std::uint64_t instance_;
  std::string secret_;
  std::string publisher_;
  std::vector<Guest> guests_;
  std::map<std::string, base::LogThrottle> told_;  ///< by reason, so that one reason does not hide another
};

}  // namespace rodeo::transport
