// Who connects to a publisher, or to a router's way to the front-ends, until he has shown who he is and said what he wants.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "transport/control_socket.h"
#include "transport/handshake.h"

namespace rodeo::transport {

class Reception {
 public:
  /// A guest with the first thing that he says: what he wants. It takes the socket; where it refuses, the socket stays, and the guest is told why.
  using Admit = std::function<Result<void>(ControlSocket&, formats::ControlMessage)>;

  /// `secret`: empty where none is asked for. `publisher`: its name, for the log.
  Reception(ControlListener listener, std::uint64_t instance, std::string secret, std::string publisher);

  std::uint16_t port() const { return listener_.port(); }

  /// Lets in who is there, at most so many at a time, and listens to each. Returns how many were turned away: another version, no secret, what cannot be
  /// read, or silence for ten seconds. Does not block.
  std::uint64_t greet(std::uint64_t now_ns, const Admit& admit);

 private:
  struct Guest {
    ControlSocket socket;
    Handshake handshake;
    std::uint64_t since_ns = 0;
  };
  enum class Outcome : std::uint8_t { stays, leaves, turned_away };

  Outcome listen_to(Guest& guest, std::uint64_t now_ns, const Admit& admit);
  Outcome refused(Guest& guest, const Error& why) const;

  ControlListener listener_;
  std::uint64_t instance_;
  std::string secret_;
  std::string publisher_;
  std::vector<Guest> guests_;
};

}  // namespace rodeo::transport
