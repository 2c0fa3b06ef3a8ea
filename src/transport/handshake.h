// Who the other side is, before anything else is said: versions, and whether it knows the secret (docs/formats/network-control.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/network_control.h"

namespace rodeo::transport {

/// How long each side waits for the other until data can flow: one figure for all, since who gives up first undoes a connection that is nearly there. A
/// lost message of RDMA's connection manager is sent again after 4.3 s.
inline constexpr std::uint64_t kGreetingNs = 10'000'000'000;

/// Both sides of it. No socket, clock or chance: the nonce of `own` MUST be drawn for this connection.
///
///     subscriber                                    publisher
///       HELLO ───────────────────────────────────────► refuses another version, or a side without a secret
///       refuses ◄──────────────────────────────── HELLO
///       PROOF ───────────────────────────────────────► refuses a wrong one           } where there
///       refuses a wrong one ◄──────────────────── PROOF, done                        } is a secret
///       done
class Handshake {
 public:
  enum class Side : std::uint8_t { subscriber, publisher };

  /// An empty secret: none. `own.secret_required` follows from it.
  Handshake(Side side, formats::ControlHello own, std::string secret);

  /// Appends our HELLO.
  void begin(std::vector<std::byte>& out);

  /// A message of the peer; appends what is to be sent. After an error the connection ends as soon as that is sent: it tells the peer why.
  /// Errors transport.version, transport.secret, transport.protocol.
  Result<void> take(const formats::ControlMessage& message, std::vector<std::byte>& out);

  bool done() const { return state_ == State::done; }

  /// Good when done.
  const formats::ControlHello& peer() const { return peer_; }

 private:
  enum class State : std::uint8_t { hello, proof, done, refused };

  Result<void> take_hello(const formats::ControlHello& hello, std::vector<std::byte>& out);
  Result<void> take_proof(const formats::ControlProof& proof, std::vector<std::byte>& out);
  Result<void> take_refusal(const formats::ControlRefuse& refusal);
  std::unexpected<Error> refuse(Error error, std::vector<std::byte>& out);
  formats::ControlProof proof_of(Side side) const;

  Side side_;
  formats::ControlHello own_;
  std::string secret_;
  formats::ControlHello peer_;
  State state_ = State::hello;
};

}  // namespace rodeo::transport
