// TCP connections for the control messages of publisher and subscriber (docs/reference/formats/network-control.md). Nothing
// blocks, except wait().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd_socket.h"
#include "formats/network_control.h"

namespace rodeo::transport {

/// One side of a control connection. One thread.
class ControlSocket {
 public:
  ControlSocket() = default;
  /// A socket that is connected or connecting.
  explicit ControlSocket(base::UniqueFd socket) : socket_(std::move(socket)) {}

  /// A peer of kind `reads` counts as gone when it leaves our messages unread for 15 s.
  enum class Peer : std::uint8_t { reads, may_not_read };
  /// `address` is numerical. Returns before the connection is made; the first message received shows that it is. Error
  /// transport.address.
  static Result<ControlSocket> call(const std::string& address, std::uint16_t port, Peer peer = Peer::reads);

  /// The next message; nothing if none has arrived. Errors transport.closed (the peer is gone), transport.protocol (the
  /// bytes are not a message).
  Result<std::optional<formats::ControlMessage>> next();
  /// Passes the messages that have arrived to `on_message`, which returns Result<void>: at most 64, so that a peer that
  /// sends many does not delay the others. Ends with the first error. False: there may be more messages.
  template <typename OnMessage>
  Result<bool> read(OnMessage&& on_message) {
    flush();
    for (int i = 0; i < kMostMessages && is_open(); ++i) {
      const auto message = RODEO_TRY(next());
      if (!message) return true;
      RODEO_TRY(on_message(*message));
    }
    return !is_open();
  }

  /// Bytes that cannot be sent now are sent by the next flush().
  void say(const formats::ControlMessage& message);
  void say(const std::vector<std::byte>& encoded);
  void flush();
  bool all_sent() const { return out_.empty(); }
  /// Waits until bytes arrive, until unsent bytes can be sent, or until the time is over.
  void wait(std::chrono::milliseconds patience) const;

  /// Ends our direction; the peer's messages can still be received.
  void end_output();
  bool is_open() const { return static_cast<bool>(socket_); }
  /// -1 after the socket is closed.
  int descriptor() const { return socket_.get(); }
  void close() { socket_.reset(); }
  /// True if the peer has ended its direction. Messages that arrived before may still wait for next().
  bool peer_is_gone() const;
  /// "127.0.0.1:34567"
  std::string peer() const;

 private:
  friend class ControlListener;

  static constexpr int kMostMessages = 64;

  base::UniqueFd socket_;
  std::string peer_;  // set for accepted sockets only
  std::vector<std::byte> in_;
  std::size_t taken_ = 0;  // bytes of in_ that next() has returned
  std::vector<std::byte> out_;
};

/// The listening socket of a publisher: any free port of a numerical address.
class ControlListener {
 public:
  ControlListener() = default;
  /// Error transport.address.
  static Result<ControlListener> open(const std::string& address);

  std::uint16_t port() const { return port_; }
  /// The next new connection; empty if none waits.
  std::optional<ControlSocket> accept() const;

 private:
  base::UniqueFd socket_;
  std::uint16_t port_ = 0;
};

/// True for addresses in 127.0.0.0/8, and for ::1.
bool is_loopback(const std::string& address);
/// True for 0.0.0.0 and ::, in any notation.
bool is_wildcard(const std::string& address);

}  // namespace rodeo::transport
