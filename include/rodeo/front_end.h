// Sending to front-ends for programs that use the library, through a router that has their cards (`rodeo route`, docs/protocols/front-ends.md).
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

/// What the functions below throw: what went wrong and what to do. `code` is "transport.link_owned" and so on (`rodeo explain`).
class FrontEndError : public std::runtime_error {
 public:
  FrontEndError(std::string code, const std::string& message) : std::runtime_error(message), code_(std::move(code)) {}
  const std::string& code() const noexcept { return code_; }

 private:
  std::string code_;
};

struct FrontEndOptions {
  std::string name = "sender";                 ///< as the router shows it
  std::filesystem::path bus = {};              ///< where routers are found; empty: that of this user on this host
  std::filesystem::path secret_file = {};      ///< with the secret that the router requires; empty: none
  std::chrono::milliseconds patience{10'000};  ///< for the claim, and for each answer
};

/// What became of a message.
struct FrontEndAnswer {
  std::uint64_t number = 0;
  std::string code = {};  ///< empty: the card has it; else why not
  std::string what = {};
  std::vector<std::byte> bytes =
      {};  ///< of a front-end that answers at once (CRU); that of a FELIX link comes on its link to the host
};

/// Links to front-ends, claimed at the router that has their cards: nobody else can send to them while this lives. Move only; one thread. Each answer is
/// waited for at most `patience`. Messages of a link arrive in the order in which they are sent. A connection that breaks, or on which an answer does not
/// come in time, is transport.closed from then on: what was not answered may have arrived or not. Let this one go before you claim again; the router
/// may take some milliseconds to see it.
class FrontEndSender {
 public:
  /// FIDs of links of one router, with or without the direction bit; one that is named twice counts once. Throws FrontEndError: transport.no_front_end
  /// (nobody has all of them), transport.link_owned, transport.secret, transport.version, transport.closed.
  static FrontEndSender claim(std::span<const Fid> links, const FrontEndOptions& options = {});
  FrontEndSender(FrontEndSender&&) noexcept;
  FrontEndSender& operator=(FrontEndSender&&) noexcept;
  ~FrontEndSender();

  /// At most 65,535 bytes. Returns when the card has the message, with what the front-end answered at once. Throws the answer's error, too. Answers of
  /// earlier post()s are passed over.
  std::vector<std::byte> send(Fid link, std::span<const std::byte> message);

  /// The same without waiting for the answer, for many messages: returns the message's number. Waits while 64 are not answered. What the connection does
  /// not take at once goes with the next call.
  std::uint64_t post(Fid link, std::span<const std::byte> message);
  /// The answers of post(), one each, in order; nothing when none is owed.
  std::optional<FrontEndAnswer> next_answer();

 private:
  struct Inside;
  explicit FrontEndSender(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace rodeo
