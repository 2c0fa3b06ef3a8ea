// Sender: the client's end of the way to front-ends (docs/protocols/front-ends.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "rodeo/ids.h"
#include "transport/bus.h"
#include "transport/control_socket.h"

namespace rodeo::transport {

struct SenderSettings {
  std::string name = "sender";     ///< as the router shows it
  std::filesystem::path bus = {};  ///< empty: default_bus()
  std::string secret = {};
  std::chrono::milliseconds patience{10'000};  ///< for the claim, and for each answer
};

/// Links to front-ends that are its own while it lives, of one router. One thread. Each answer is waited for at most `patience`. A connection that breaks,
/// or on which an answer does not come in time, has ended: what was not answered may have arrived or not, and only its user knows whether to send it
/// twice.
class Sender {
 public:
  /// What became of a message.
  struct Answer {
    std::uint64_t number = 0;
    std::optional<Error> error = {};  ///< it did not go
    std::vector<std::byte> bytes = {};
  };

  /// Links with or without the direction bit, which is set; one that is named twice counts once. Errors transport.no_front_end (nobody on the bus has all of
  /// them), transport.link_owned, transport.version, transport.secret, transport.closed.
  static Result<Sender> claim(SenderSettings settings, std::span<const Fid> links);

  /// Sends and returns the number of the message; what the connection does not take at once goes with the next call. Waits while 64 are not answered. Errors
  /// transport.unknown_link (not claimed), router.front_end_message (more than 65,535 bytes), transport.closed.
  Result<std::uint64_t> post(Fid link, std::span<const std::byte> message);

  /// The next answer, in the order of post(). Nothing: none is owed.
  Result<std::optional<Answer>> next();

  /// post() and its answer; what earlier ones were answered is lost.
  Result<std::vector<std::byte>> send(Fid link, std::span<const std::byte> message);

 private:
  Sender(SenderSettings settings, std::vector<Fid> links) : settings_(std::move(settings)), links_(std::move(links)) {}

  Result<void> begin();
  Result<bool> greet(const BusEntry& entry);
  Result<formats::ControlMessage> receive();
  Result<void> take_answer();

  SenderSettings settings_;
  std::vector<Fid> links_;
  ControlSocket socket_;
  std::uint64_t posted_ = 0;
  std::uint64_t came_ = 0;      // answers
  std::deque<Answer> answers_;  // of these: that next() has not returned
};

}  // namespace rodeo::transport
