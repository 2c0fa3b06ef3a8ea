#include "router/front_end/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/log.h"
#include "base/sentence.h"
#include "card/card.h"
#include "card/dma/from_host_channel.h"
#include "card/enumeration.h"
#include "card/operations/slow_control.h"
#include "card_registers/cru.h"
#include "formats/fid.h"
#include "formats/from_host.h"
#include "formats/front_end_link.h"
#include "formats/network_control.h"

namespace rodeo::router {
namespace {

namespace cru = card_registers::cru;
namespace felix = card_registers::felix;

using formats::FrontEndProtocol;
using Answer = std::optional<std::vector<std::byte>>;

// From-host E-links: all of e-groups 0 to 4, and those of IC and EC in e-group 7.
constexpr unsigned kDataElinks = 40;

constexpr std::chrono::milliseconds kEmptyPatience{1000};
constexpr std::chrono::milliseconds kSwtPatience{10};
constexpr std::size_t kMostFrames = 128;  // limit for one message, because other messages wait during it
constexpr std::size_t kMostWords = formats::kMostControlBytesToFrontEnd / 10;  // limit for one answer

template <typename T>
T need(Result<T> result, const std::string& what) {
  if (!result) throw SetupError(result.error().within(what));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

class FelixFrontEnds final : public FrontEndDevice {
 public:
  FelixFrontEnds(std::unique_ptr<card::Card> card, std::uint32_t detector, std::uint32_t connector)
      : card_(std::move(card)),
        channel_(need(card::FromHostChannel::open(*card_), "cannot open the connection to the front-ends")) {
    const auto count = need(card_->read64(felix::reg("links")), "cannot read the number of links");
    const auto add = [&](std::uint64_t link, unsigned elink) {
      elinks_.push_back(static_cast<std::uint16_t>(link << 6 | elink));
      links_.push_back(formats::to_front_end(formats::fid_of_card_elink(detector, connector, elinks_.back())));
    };
    for (std::uint64_t link = 0; link < std::min<std::uint64_t>(count, 24); ++link) {
      for (unsigned elink = 0; elink < kDataElinks; ++elink) add(link, elink);
      add(link, formats::kIcElink);
      add(link, formats::kEcElink);
    }
  }

  std::span<const Fid> links() const override { return links_; }
  void hurry() override { card_->function().hurry(); }

  Result<Answer> send(std::size_t link, std::span<const std::byte> message) override {
    const std::size_t bytes = (formats::from_host_packets(message.size()) + 1) * formats::kFromHostPacketBytes;
    if (card::FromHostChannel::kRingBytes - RODEO_TRY(channel_->pending()) < bytes) return std::nullopt;
    packets_.clear();
    formats::append_from_host(packets_, elinks_[link], message, channel_->length());
    if (!RODEO_TRY(channel_->write(packets_))) return std::nullopt;
    return std::vector<std::byte>{};
  }

  std::size_t drain() override {
    const auto deadline = std::chrono::steady_clock::now() + kEmptyPatience;
    for (;;) {
      const auto pending = channel_->pending();
      if (!pending)
        base::log_warning("messages in card {} may be lost: {}", card_->address().text(), base::in_a_line(pending.error()));
      if (!pending || *pending == 0 || std::chrono::steady_clock::now() >= deadline) return pending.value_or(0);
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }

 private:
  std::unique_ptr<card::Card> card_;
  std::unique_ptr<card::FromHostChannel> channel_;
  std::vector<Fid> links_;
  std::vector<std::uint16_t> elinks_;
  std::vector<std::byte> packets_;
};

template <typename T>
T number_at(std::span<const std::byte> bytes, std::size_t at) {
  T number{};
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

template <typename... T>
std::vector<std::byte> bytes_of(T... numbers) {
  std::vector<std::byte> bytes;
  const auto add = [&](auto number) {
    const auto view = std::as_bytes(std::span(&number, 1));
    bytes.insert(bytes.end(), view.begin(), view.end());
  };
  (add(numbers), ...);
  return bytes;
}

std::unexpected<Error> wrong_size(std::string_view protocol, std::string_view expected, std::size_t bytes) {
  return std::unexpected(
      Error{"router.front_end_message",
            fmt::format("a message of {} has {}, not {}", protocol, expected, base::counted(bytes, "byte")), "",
            "docs/reference/protocols/front-ends.md describes the message"});
}

class CruFrontEnds final : public FrontEndDevice {
 public:
  CruFrontEnds(std::unique_ptr<card::Card> card, std::uint32_t detector, std::uint32_t connector) : card_(std::move(card)) {
    for (unsigned link = 0; link < cru::kLinks; ++link) {
      for (const auto protocol : {FrontEndProtocol::sca, FrontEndProtocol::swt, FrontEndProtocol::ic})
        links_.push_back(formats::to_front_end(Fid::of(detector, connector, link, 0), protocol));
    }
  }

  std::span<const Fid> links() const override { return links_; }
  void hurry() override { card_->function().hurry(); }

  Result<Answer> send(std::size_t link, std::span<const std::byte> message) override {
    const unsigned number = links_[link].link();
    switch (static_cast<FrontEndProtocol>(links_[link].protocol())) {
      case FrontEndProtocol::sca: return send_sca(number, message);
      case FrontEndProtocol::swt: return send_swt(number, message);
      default: return send_ic(number, message);
    }
  }

 private:
  Result<Answer> send_sca(unsigned link, std::span<const std::byte> message) {
    constexpr std::size_t kFrame = 8;
    if (message.size() % kFrame != 0 || message.size() > kMostFrames * kFrame)
      return wrong_size("SCA", "up to 128 frames of 8 bytes", message.size());
    if (message.empty()) RODEO_TRY(card::reset_slow_control(*card_, link));
    std::vector<std::byte> answers;
    for (unsigned number = 1; !message.empty(); message = message.subspan(kFrame), ++number) {
      const card::ScaFrame request{.command = number_at<std::uint32_t>(message, 0),
                                   .data = number_at<std::uint32_t>(message, 4)};
      const card::ScaFrame answer =
          RODEO_TRY_WITHIN(card::exchange_sca(*card_, link, request), fmt::format("frame {} of the message", number));
      const auto bytes = bytes_of(answer.command, answer.data);
      answers.insert(answers.end(), bytes.begin(), bytes.end());
    }
    return answers;
  }

  Result<Answer> send_swt(unsigned link, std::span<const std::byte> message) {
    constexpr std::size_t kWord = 10;
    if (message.size() % kWord != 0 || message.size() > kMostFrames * kWord)
      return wrong_size("SWT", "up to 128 words of 10 bytes", message.size());
    for (; !message.empty(); message = message.subspan(kWord)) {
      RODEO_TRY(card::write_swt(*card_, link,
                                {.low = number_at<std::uint32_t>(message, 0),
                                 .medium = number_at<std::uint32_t>(message, 4),
                                 .high = number_at<std::uint16_t>(message, 8)}));
    }
    std::vector<std::byte> answers;
    for (const card::SwtWord& word : RODEO_TRY(card::read_swt(*card_, link, kMostWords, kSwtPatience))) {
      const auto bytes = bytes_of(word.low, word.medium, word.high);
      answers.insert(answers.end(), bytes.begin(), bytes.end());
    }
    return answers;
  }

  Result<Answer> send_ic(unsigned link, std::span<const std::byte> message) {
    if (message.size() != 2 && message.size() != 3)
      return wrong_size("IC", "2 bytes (read) or 3 bytes (write)", message.size());
    const auto address = number_at<std::uint16_t>(message, 0);
    if (message.size() == 2) return bytes_of(RODEO_TRY(card::read_ic(*card_, link, address)));
    const auto value = number_at<std::uint8_t>(message, 2);
    RODEO_TRY(card::write_ic(*card_, link, address, value));
    return bytes_of(value);
  }

  std::unique_ptr<card::Card> card_;
  std::vector<Fid> links_;
};

}  // namespace

std::vector<std::unique_ptr<FrontEndDevice>> open_front_ends(const input::CardInputSettings& cards) {
  std::vector<std::unique_ptr<FrontEndDevice>> devices;
  const std::uint32_t detector = cards.detector;
  std::uint32_t connector = cards.connector;
  for (const std::string& id : cards.ids) {
    auto entry = need(card::find_card(id), fmt::format("cannot find card {}", id));
    entry.function.register_map = card::register_map_of(cards.register_map);
    entry.function.silence = card::pci::kRunSilence;
    auto card = need(card::Card::open(entry.function), fmt::format("cannot open card {}", id));
    switch (card->type()) {
      case card::CardType::felix:
        devices.push_back(std::make_unique<FelixFrontEnds>(std::move(card), detector, connector));
        break;
      case card::CardType::cru:
        devices.push_back(std::make_unique<CruFrontEnds>(std::move(card), detector, connector));
        break;
      default:
        throw SetupError({"router.front_ends",
                          fmt::format("{} is a {}: Rodeo cannot send to its front-ends", id, card::name_of(card->type())),
                          "router.front_ends.enabled", "leave it out, or name FELIX and CRU cards"});
    }
    ++connector;
  }
  return devices;
}

}  // namespace rodeo::router
