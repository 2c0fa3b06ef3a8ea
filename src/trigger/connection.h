// One connection of the trigger protocol, at either end: whole messages over a non-blocking socket. Also the addresses of
// such connections.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unix_endpoint.h"
#include "transport/handshake.h"
#include "trigger/protocol.h"

namespace rodeo::trigger {

/// Not thread-safe. Nothing blocks.
class TriggerConnection {
 public:
  TriggerConnection() = default;
  explicit TriggerConnection(base::UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }
  explicit operator bool() const { return static_cast<bool>(socket_); }
  void close() { *this = TriggerConnection(); }

  /// Reads what has arrived, as far as there is room. False: the peer is gone; next() still returns earlier messages.
  bool receive();
  /// Returns the next whole message, or nothing if none is complete yet. After an error the connection must end.
  std::expected<std::optional<protocol::Message>, protocol::Wrong> next();

  /// Sends as much as the socket accepts and keeps the rest. False: the peer is gone.
  bool send(const protocol::Message& message);
  bool flush();
  std::size_t unsent_bytes() const { return out_.size() - sent_; }

  /// Begins the transport's handshake.
  void greet(transport::Handshake::Side side, const std::string& secret);
  bool greets() const { return handshake_.has_value(); }
  /// Reads the peer's part of the handshake and answers it. After an error the connection must end: transport.secret,
  /// transport.version, transport.protocol.
  Result<void> on_greeting(const protocol::Greeting& greeting);
  /// True if both sides know the secret.
  bool greeted() const { return handshake_ && handshake_->done(); }

 private:
  base::UniqueFd socket_;
  std::vector<std::byte> in_;
  std::size_t have_ = 0;  // bytes in in_
  std::size_t read_ = 0;  // part of have_ that next() has returned
  std::vector<std::byte> out_;
  std::size_t sent_ = 0;  // part of out_ that the socket has accepted
  std::optional<transport::Handshake> handshake_;
};

/// The address at which an authority listens: "NAME" is a Unix socket in the runtime directory, "HOST:PORT" is TCP.
class TriggerAddress {
 public:
  /// Error trigger.address.
  static Result<TriggerAddress> parse(const std::string& text);

  const std::string& text() const { return text_; }
  bool is_tcp() const { return !port_.empty(); }

  /// Reads the secret of an authority at this address from a file. Empty for a Unix socket, which needs no secret. `key`
  /// names the file's key in messages. Errors transport.secret_file; transport.no_secret: other hosts reach the address, and
  /// no file is named.
  Result<std::string> secret(const std::filesystem::path& file, std::string_view key = "secret_file") const;

  /// Returns a connected non-blocking socket. Waits at most `patience`. Error trigger.socket.
  Result<base::UniqueFd> connect(std::chrono::milliseconds patience) const;

  /// A listening non-blocking socket. Port 0 stands for any free port. The destructor removes the socket's name.
  struct Listener {
    base::UnixEndpoint named;  ///< valid for a Unix socket
    base::UniqueFd tcp;
    std::string where = {};  ///< the path, or HOST:PORT with the real port, for messages

    int socket() const { return named ? named.get() : tcp.get(); }
  };
  /// Errors trigger.socket, trigger.taken.
  Result<Listener> listen() const;

 private:
  std::string text_;
  std::string host_;
  std::string port_;  // empty for a Unix socket
};

/// Returns the next waiting connection, or no descriptor.
base::UniqueFd accept_connection(const TriggerAddress::Listener& listener);

/// The address of the other end of a connection, for people.
std::string peer_of(int socket);

}  // namespace rodeo::trigger
