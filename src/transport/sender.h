// Sender: the client's end of a connection to front-ends through a router (docs/reference/protocols/front-ends.md).
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
#include "transport/caller.h"

namespace rodeo::transport {

struct SenderSettings {
  std::string name = "sender";     ///< name that the router shows
  std::filesystem::path bus = {};  ///< empty: default_bus()
  std::string secret = {};
  std::chrono::milliseconds patience{10'000};  ///< limit of the wait for the claim, and for each answer
};

/// Owns links to the front-ends of one router for its lifetime. One thread. Waits for each answer at most `patience`. A
/// connection that breaks, or on which an answer is late, has ended: unanswered messages may or may not have arrived, and
/// the caller decides whether to send them again.
class Sender {
 public:
  /// The result of a message.
  struct Answer {
    std::uint64_t number = 0;
    std::optional<Error> error = {};  ///< the message was not delivered
    std::vector<std::byte> bytes = {};
  };

  /// Sets the direction bit of the links; a link that is named twice counts once. Errors transport.no_front_end (no router
  /// on the bus has all of them), transport.link_owned, transport.version, transport.secret, transport.closed.
  static Result<Sender> claim(SenderSettings settings, std::span<const Fid> links);

  /// Sends a message and returns its number. What the connection does not accept at once is sent by the next call. Waits
  /// while 64 messages are not answered. Errors transport.unknown_link (not claimed), router.front_end_message (more than
  /// 65,535 bytes), transport.closed.
  Result<std::uint64_t> post(Fid link, std::span<const std::byte> message);

  /// Returns the next answer, in the order of post(), or nothing if no answer is outstanding.
  Result<std::optional<Answer>> next();

  /// Calls post() and waits for the answer. Drops the answers to earlier messages.
  Result<std::vector<std::byte>> send(Fid link, std::span<const std::byte> message);

 private:
  Sender(SenderSettings settings, std::vector<Fid> links) : settings_(std::move(settings)), links_(std::move(links)) {}

  Result<void> begin();
  Result<bool> greet(const BusEntry& entry);
  Result<formats::ControlMessage> receive();
  Result<void> on_answer();

  SenderSettings settings_;
  std::vector<Fid> links_;
  Caller caller_;
  std::uint64_t posted_ = 0;
  std::uint64_t answered_ = 0;  // answers received
  std::deque<Answer> answers_;  // answers that next() has not returned
};

}  // namespace rodeo::transport
