// TCP connections on which publisher and subscriber talk of pages (docs/formats/network-control.md), without waiting for anything.
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

/// One side of a conversation. One thread.
class ControlSocket {
 public:
  ControlSocket() = default;
  /// A connected socket, or one that connects.
  explicit ControlSocket(base::UniqueFd socket) : socket_(std::move(socket)) {}

  /// Whether the other side reads what we say: one that leaves it unread for a quarter of a minute is gone, but for one that may.
  enum class Peer : std::uint8_t { reads, may_not_read };
  /// To a numerical address; the connection is there when something has been received. Error transport.address.
  static Result<ControlSocket> call(const std::string& address, std::uint16_t port, Peer peer = Peer::reads);

  /// The next message; nothing: none has come. Errors transport.closed (the peer is gone), transport.protocol (what came is no message).
  Result<std::optional<formats::ControlMessage>> next();

  /// What cannot go now goes with the next flush().
  void say(const formats::ControlMessage& message);
  void say(const std::vector<std::byte>& encoded);
  void flush();
  bool all_said() const { return out_.empty(); }
  /// Until something has come, or what could not be said can go, or the time is over.
  void wait(std::chrono::milliseconds patience) const;

  /// The peer sees the end of what we say, and may still be heard.
  void say_no_more();
  bool is_open() const { return static_cast<bool>(socket_); }
  /// -1: closed.
  int descriptor() const { return socket_.get(); }
  void close() { socket_.reset(); }
  /// The peer will say nothing more, whatever of what it said has not been taken yet.
  bool peer_is_gone() const;
  /// "127.0.0.1:34567"
  std::string peer() const;

 private:
  friend class ControlListener;

  base::UniqueFd socket_;
  std::string peer_;  // of one that was accepted
  std::vector<std::byte> in_;
  std::size_t taken_ = 0;  // of in_
  std::vector<std::byte> out_;
};

/// Where a publisher listens for conversations: any free port of a numerical address.
class ControlListener {
 public:
  ControlListener() = default;
  /// Error transport.address.
  static Result<ControlListener> open(const std::string& address);

  std::uint16_t port() const { return port_; }
  /// The next who called; empty if there is none.
  std::optional<ControlSocket> accept() const;

 private:
  base::UniqueFd socket_;
  std::uint16_t port_ = 0;
};

/// Of 127.0.0.0/8 and ::1.
bool is_loopback(const std::string& address);
/// 0.0.0.0 or ::, however it is written.
bool is_wildcard(const std::string& address);

}  // namespace rodeo::transport
