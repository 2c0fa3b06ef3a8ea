// Who connects to a publisher, or to a router's way to the front-ends, until he has shown who he is and said what he wants.
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

/// Peers that were turned away or cut off; of these, the usual reasons.
struct Refusals {
  std::uint64_t peers = 0;
  std::uint64_t version = 0;     ///< they speak another version
  std::uint64_t secret = 0;      ///< they have none, or another one
  std::uint64_t unreadable = 0;  ///< what they said cannot be read, or has no place

  /// One of them. `code`: of the error that it is told.
  static Refusals of(std::string_view code);
  Refusals& operator+=(const Refusals& more);
  /// Into the counters of those whom they wanted something of.
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
  /// A guest with the first thing that he says: what he wants. It takes the socket; where it refuses, the socket stays, and the guest is told why.
  using Admit = std::function<Result<void>(ControlSocket&, formats::ControlMessage)>;

  /// `secret`: empty where none is asked for. `publisher`: its name, for the log.
  Reception(ControlListener listener, std::uint64_t instance, std::string secret, std::string publisher);

  std::uint16_t port() const { return listener_.port(); }

  /// Lets in who is there, at most so many at a time, and listens to each. Returns those that were turned away, those that were silent for ten seconds
  /// among them. Does not block.
  Refusals greet(std::uint64_t now_ns, const Admit& admit);

 private:
  struct Guest {
    ControlSocket socket;
    Handshake handshake;
    std::uint64_t since_ns = 0;
  };
  /// False: it is a guest no more.
  bool listen_to(Guest& guest, std::uint64_t now_ns, const Admit& admit, Refusals& refusals);
  void refuse(Guest& guest, const Error& why, Refusals& refusals);

  ControlListener listener_;
  std::uint64_t instance_;
  std::string secret_;
  std::string publisher_;
  std::vector<Guest> guests_;
  std::map<std::string, base::LogThrottle> told_;  ///< by reason: one does not hide the others
};

}  // namespace rodeo::transport
