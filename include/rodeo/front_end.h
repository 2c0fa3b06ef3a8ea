// Sends messages to front-ends, for programs, through a router that has their cards (`rodeo route`,
// docs/reference/protocols/front-ends.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "rodeo/ids.h"

namespace rodeo {

/// The exception of the functions below: what is wrong and what to do. `code` is "transport.link_owned" and so on (`rodeo
/// explain`).
class FrontEndError : public std::runtime_error {
 public:
  FrontEndError(std::string code, const std::string& message) : std::runtime_error(message), code_(std::move(code)) {}
  const std::string& code() const noexcept { return code_; }

 private:
  std::string code_;
};

struct FrontEndOptions {
  std::string name = "sender";                 ///< the name that the router shows
  std::filesystem::path bus = {};              ///< where routers are found; empty: the default bus of this user on this host
  std::filesystem::path secret_file = {};      ///< file with the secret that the router requires; empty: none
  std::chrono::milliseconds patience{10'000};  ///< longest time for the claim, and for each answer
};

/// The result of a message.
struct FrontEndAnswer {
  std::uint64_t number = 0;
  std::string code = {};  ///< empty: the card has the message; else the reason
  std::string what = {};
  std::vector<std::byte> bytes =
      {};  ///< answer of a front-end that answers at once (CRU); a FELIX link answers on its link to the host
};

/// Links to front-ends, claimed at the router that has their cards: only the owner can send to them while this object
/// exists. Move only; one thread. Waits for each answer at most `patience`. Messages of a link arrive in the order sent.
/// After a connection broke, or an answer was late, all calls throw transport.closed; unanswered messages may or may not
/// have arrived. Destroy this object before you claim again; the router may need some milliseconds to notice.
class FrontEndSender {
 public:
  /// `links`: FIDs of links of one router, with or without the direction bit; a link named twice counts once. Throws
  /// FrontEndError: transport.no_front_end (no router has all of them), transport.link_owned, transport.secret,
  /// transport.version, transport.closed.
  static FrontEndSender claim(std::span<const Fid> links, const FrontEndOptions& options = {});
  FrontEndSender(FrontEndSender&&) noexcept;
  FrontEndSender& operator=(FrontEndSender&&) noexcept;
  ~FrontEndSender();

  /// Sends at most 65,535 bytes. Returns when the card has the message, with the front-end's immediate answer. Throws the
  /// error in an answer, too. Skips the answers of earlier post()s.
  std::vector<std::byte> send(Fid link, std::span<const std::byte> message);

  /// Sends without waiting for the answer, for many messages: returns the message's number. Waits while 64 messages are
  /// unanswered. The next call sends the bytes that the connection does not accept at once.
  std::uint64_t post(Fid link, std::span<const std::byte> message);
  /// The answers of post(), one each, in order; nothing if no answer is outstanding.
  std::optional<FrontEndAnswer> next_answer();

 private:
  struct Inside;
  explicit FrontEndSender(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace rodeo
