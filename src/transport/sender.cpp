#include "transport/sender.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/sentence.h"
#include "formats/fid.h"
#include "formats/front_end_link.h"
#include "transport/random.h"

namespace rodeo::transport {
namespace {

constexpr std::uint64_t kMostUnanswered = 64;
constexpr std::chrono::milliseconds kMostPatience = std::chrono::hours{24};
constexpr std::chrono::milliseconds kAnswerPatience{500};  // for the answer of a process on the bus

}  // namespace

Result<Sender> Sender::claim(SenderSettings settings, std::span<const Fid> links) {
  std::vector<Fid> wanted;
  for (const Fid link : links) {
    const Fid fid = formats::to_front_end(link);
    if (std::ranges::find(wanted, fid) == wanted.end()) wanted.push_back(fid);
  }
  settings.patience = std::clamp(settings.patience, std::chrono::milliseconds{0}, kMostPatience);
  Sender sender(std::move(settings), std::move(wanted));
  RODEO_TRY(sender.begin());
  return sender;
}

Result<void> Sender::begin() {
  const std::filesystem::path bus = settings_.bus.empty() ? default_bus() : settings_.bus;
  const auto reading = RODEO_TRY(read_bus(bus));
  const auto has_all = [&](const BusEntry& entry) {
    return std::ranges::all_of(links_, [&](Fid link) { return std::ranges::find(entry.links, link) != entry.links.end(); });
  };
  // The entry may be stale: its router may be gone.
  bool greeted = false;
  for (const BusEntry& entry : reading.entries) {
    if (links_.empty() || !has_all(entry) || !accepts_connections(entry.address, entry.port, kAnswerPatience)) continue;
    greeted = RODEO_TRY(greet(entry));
    if (greeted) break;
  }
  if (!greeted)
    return std::unexpected(
        Error{"transport.no_front_end",
              links_.empty() ? "no link to a front-end was named"
                             : fmt::format("no router on the bus has a connection to {}{}", formats::to_text(links_.front()),
                                           links_.size() > 1 ? " and to all other named links" : ""),
              bus.string(), "start a router with router.front_ends.enabled = true; `rodeo route list` shows all routers"});
  caller_.socket.say(formats::ControlClaim{.name = settings_.name, .links = links_});
  const auto said = RODEO_TRY(receive());
  if (std::holds_alternative<formats::ControlClaimed>(said)) return {};
  return std::unexpected(Error{"transport.protocol", "the router answered the claim with an unexpected message"});
}

// False: another process than that of the entry answers.
Result<bool> Sender::greet(const BusEntry& entry) {
  // A router with a limit on its rate may stop reading.
  RODEO_TRY(caller_.call(entry, settings_.secret, random_number(), ControlSocket::Peer::may_not_read));
  while (!RODEO_TRY(caller_.on_greeting(RODEO_TRY(receive())))) continue;
  return caller_.check_instance().has_value();
}

Result<formats::ControlMessage> Sender::receive() {
  if (!caller_.socket.is_open()) return std::unexpected(Error{"transport.closed", "the connection to the router has ended"});
  const auto deadline = std::chrono::steady_clock::now() + settings_.patience;
  for (;;) {
    caller_.socket.flush();
    auto message = RODEO_TRY(caller_.socket.next());
    if (message) {
      const auto* refused = std::get_if<formats::ControlRefuse>(&*message);
      if (refused == nullptr) return *std::move(message);
      const Error error{refused->code, refused->what, caller_.socket.peer(), ""};
      caller_.socket.close();
      return std::unexpected(error);
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      const std::string peer = caller_.socket.peer();
      caller_.socket.close();
      return std::unexpected(
          Error{"transport.closed", "the router does not answer", peer, "`rodeo route status` shows its state"});
    }
    caller_.socket.wait(left);
  }
}

Result<std::uint64_t> Sender::post(Fid link, std::span<const std::byte> message) {
  const auto found = std::ranges::find(links_, formats::to_front_end(link));
  if (found == links_.end())
    return std::unexpected(Error{"transport.unknown_link", fmt::format("link {} was not claimed", formats::to_text(link))});
  if (message.size() > formats::kMostControlBytesToFrontEnd)
    return std::unexpected(Error{"router.front_end_message",
                                 fmt::format("a message has at most {}, not {}",
                                             base::counted(formats::kMostControlBytesToFrontEnd, "byte"), message.size()),
                                 "", "split it into several"});
  while (posted_ - answered_ >= kMostUnanswered) RODEO_TRY(on_answer());
  caller_.socket.say(formats::ControlSend{.number = ++posted_,
                                          .link = static_cast<std::uint16_t>(found - links_.begin()),
                                          .message = {message.begin(), message.end()}});
  return posted_;
}

Result<void> Sender::on_answer() {
  auto said = RODEO_TRY(receive());
  auto* const answer = std::get_if<formats::ControlAnswer>(&said);
  if (answer == nullptr || answer->number != answered_ + 1)
    return std::unexpected(Error{"transport.protocol", "the router answered a message that was not sent"});
  ++answered_;
  answers_.push_back({.number = answer->number, .bytes = std::move(answer->answer)});
  if (!answer->code.empty()) answers_.back().error = Error{answer->code, answer->what};
  return {};
}

Result<std::optional<Sender::Answer>> Sender::next() {
  if (answers_.empty()) {
    if (answered_ == posted_) return std::nullopt;
    RODEO_TRY(on_answer());
  }
  Answer answer = std::move(answers_.front());
  answers_.pop_front();
  return answer;
}

Result<std::vector<std::byte>> Sender::send(Fid link, std::span<const std::byte> message) {
  const std::uint64_t number = RODEO_TRY(post(link, message));
  while (answered_ < number) RODEO_TRY(on_answer());
  Answer answer = std::move(answers_.back());
  answers_.clear();
  if (answer.error) return std::unexpected(*std::move(answer.error));
  return std::move(answer.bytes);
}

}  // namespace rodeo::transport
