// The first messages of a connection: both sides show their versions, and that they know the secret
// (docs/reference/formats/network-control.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/network_control.h"

namespace rodeo::transport {

/// The time limit of both sides until data can flow. One value for all: a side with a shorter limit would break a connection
/// that is nearly made. RDMA's connection manager repeats a lost message after 4.3 s.
inline constexpr std::uint64_t kGreetingNs = 10'000'000'000;

/// Both sides of the handshake. It uses no socket, clock or random number: the nonce of `own` MUST be drawn for this
/// connection.
///
///     subscriber                                    publisher
///       HELLO ───────────────────────────────────────► refuses another version, or a side without a secret
///       refuses ◄──────────────────────────────── HELLO
///       PROOF ───────────────────────────────────────► refuses a wrong one           } only with
///       refuses a wrong one ◄──────────────────── PROOF, done                        } a secret
///       done
class Handshake {
 public:
  enum class Side : std::uint8_t { subscriber, publisher };

  /// An empty secret: none is required. Sets `own.secret_required`.
  Handshake(Side side, formats::ControlHello own, std::string secret);

  /// Appends our HELLO.
  void begin(std::vector<std::byte>& out);

  /// Takes a message of the peer and appends the answer. After an error, send the answer (it tells the peer the reason) and
  /// end the connection. Errors transport.version, transport.secret, transport.protocol.
  Result<void> on_message(const formats::ControlMessage& message, std::vector<std::byte>& out);

  bool done() const { return state_ == State::done; }

  /// Valid when done.
  const formats::ControlHello& peer() const { return peer_; }

 private:
  enum class State : std::uint8_t { hello, proof, done, refused };

  Result<void> on_hello(const formats::ControlHello& hello, std::vector<std::byte>& out);
  Result<void> on_proof(const formats::ControlProof& proof, std::vector<std::byte>& out);
  Result<void> on_refusal(const formats::ControlRefuse& refusal);
  std::unexpected<Error> refuse(Error error, std::vector<std::byte>& out);
  formats::ControlProof proof_of(Side side) const;

  Side side_;
  formats::ControlHello own_;
  std::string secret_;
  formats::ControlHello peer_;
  State state_ = State::hello;
};

}  // namespace rodeo::transport
