#include "card/operations/slow_control.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "card/card_wait.h"
#include "card/operations/require_type.h"
#include "card/pci/lock.h"
#include "card_registers/cru.h"

namespace rodeo::card {
namespace {

namespace cru = card_registers::cru;
using cru::reg;

constexpr std::chrono::milliseconds kLockPatience{2000};
constexpr std::chrono::milliseconds kScaPatience{100};
constexpr std::chrono::milliseconds kIcTime{10};  // duration of a write
constexpr unsigned kSwtHighMost = 0xfff;

constexpr std::uint32_t kNoOwner = 0xffffffff;  // the register has this value if no card answers
constexpr std::uint32_t kIdle = 0;
constexpr std::uint32_t kScaGo = 4;
constexpr std::uint32_t kScaBusy = 1U << 31;
constexpr std::uint32_t kScaChannelBusy = 0x40;
constexpr std::uint32_t kIcPush = 1, kIcPop = 2, kIcWrite = 4, kIcRead = 8;
constexpr std::uint32_t kIcEmpty = 1U << 16, kIcReady = 1U << 31;
constexpr std::uint32_t kIcConfiguration = 3;  // I2C address of the GBTx

/// The slow control cores of a link, under the card's lock.
struct Cores {
  Card& card;
  std::uint32_t row;  // 12 x endpoint + link
  std::optional<pci::ByteLock> alone;

  static Result<Cores> of(Card& card, unsigned link) {
    RODEO_TRY(require_type(card, CardType::cru, "slow control"));
    RODEO_TRY(require_range("the link", link, 0, cru::kLinks - 1));
    auto alone = RODEO_TRY(card.lock(pci::kSlowControlByte, "the slow control of " + card.address().text(), kLockPatience));
    return Cores{card, cru::kLinks * card.endpoint_or_zero() + link, std::move(alone)};
  }

  Result<std::uint32_t> read(const card_registers::Register& what) const {
    const std::uint32_t word = RODEO_TRY(card.read(what, row));
    if (word == kNoOwner) return failed("the card does not answer");
    return word;
  }
  Result<void> write(const card_registers::Register& what, std::uint32_t value) const {
    return card.write(what, value, row);
  }
  /// Writes a command, then the idle word, so that the core sees the command once.
  Result<void> pulse(const card_registers::Register& what, std::uint32_t value) const {
    RODEO_TRY(write(what, value));
    return write(what, kIdle);
  }
  std::unexpected<Error> failed(std::string what) const {
    return std::unexpected(Error{"card.slow_control", std::move(what),
                                 fmt::format("{}, link {}", card.address().text(), row % cru::kLinks),
                                 "see whether the link is up (`rodeo card status`) and the front-end has power"});
  }
};

std::string sca_errors(std::uint32_t flags) {
  static constexpr std::array<std::string_view, 7> kFlags{
      "generic error",  "invalid channel", "invalid command",      "invalid transaction number",
      "invalid length", "channel off",     "channel is still busy"};
  std::string out;
  for (std::size_t bit = 0; bit < kFlags.size(); ++bit) {
    if ((flags >> bit & 1U) != 0) out += fmt::format("{}{}", out.empty() ? "" : ", ", kFlags[bit]);
  }
  return out;
}

}  // namespace

Result<ScaFrame> exchange_sca(Card& card, unsigned link, ScaFrame request) {
  RODEO_TRY(require_range("the transaction of an SCA frame", request.command >> 16 & 0xff, 1, 254));
  const Cores cores = RODEO_TRY(Cores::of(card, link));
  CardWait wait(kScaPatience);
  const auto wait_for_core = [&]() -> Result<void> {
    while ((RODEO_TRY(cores.read(reg("sca_status"))) & kScaBusy) != 0) {
      if (wait.over()) return cores.failed(fmt::format("the SCA core is still busy after {} ms", kScaPatience.count()));
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return {};
  };
  RODEO_TRY(wait_for_core());
  RODEO_TRY(cores.write(reg("sca_write_data"), request.data));
  RODEO_TRY(cores.write(reg("sca_write_command"), request.command));
  RODEO_TRY(cores.pulse(reg("sca_control"), kScaGo));
  RODEO_TRY(wait_for_core());
  for (;;) {
    ScaFrame answer;
    answer.command = RODEO_TRY(cores.read(reg("sca_read_command")));
    answer.data = RODEO_TRY(card.read(reg("sca_read_data"), cores.row));
    // The core still has an older answer: the SCA did not answer this frame.
    if ((answer.command ^ request.command) >> 16 != 0)
      return cores.failed(fmt::format("the SCA answers {:#010x}, which belongs to another transaction", answer.command));
    const std::uint32_t flags = answer.command & 0x7f;
    if (flags == 0) return answer;
    if (flags != kScaChannelBusy)
      return cores.failed(fmt::format("the SCA answers {:#010x}: {}", answer.command, sca_errors(flags)));
    if (wait.over())
      return cores.failed(
          fmt::format("the SCA's channel {} is still busy after {} ms", answer.command >> 24, kScaPatience.count()));
  }
}

Result<void> write_swt(Card& card, unsigned link, SwtWord word) {
  RODEO_TRY(require_range("bits 75 to 64 of an SWT word", word.high, 0, kSwtHighMost));
  const Cores cores = RODEO_TRY(Cores::of(card, link));
  RODEO_TRY(cores.write(reg("swt_write_high"), word.high));
  RODEO_TRY(cores.write(reg("swt_write_medium"), word.medium));
  return cores.write(reg("swt_write"), word.low);  // this write sends the word
}

Result<std::vector<SwtWord>> read_swt(Card& card, unsigned link, std::size_t most, std::chrono::milliseconds patience) {
  const Cores cores = RODEO_TRY(Cores::of(card, link));
  CardWait wait(patience);
  std::uint32_t waiting = 0;
  for (;;) {
    waiting = RODEO_TRY(cores.read(reg("swt_monitor"))) >> 16;
    if (waiting > 0 || wait.over()) break;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  std::vector<SwtWord> words(std::min<std::size_t>(waiting, most));
  for (SwtWord& word : words) {
    word.low = RODEO_TRY(card.read(reg("swt_read"), cores.row));  // this read takes the word from the FIFO
    word.medium = RODEO_TRY(card.read(reg("swt_read_medium"), cores.row));
    word.high = static_cast<std::uint16_t>(RODEO_TRY(cores.read(reg("swt_read_high"))) & kSwtHighMost);
  }
  return words;
}

Result<void> write_ic(Card& card, unsigned link, std::uint16_t address, std::uint8_t value) {
  const Cores cores = RODEO_TRY(Cores::of(card, link));
  RODEO_TRY(cores.write(reg("ic_write_configuration"), kIcConfiguration));
  RODEO_TRY(cores.write(reg("ic_write"), std::uint32_t{value} << 16 | address));
  RODEO_TRY(cores.pulse(reg("ic_command"), kIcPush));
  RODEO_TRY(cores.pulse(reg("ic_command"), kIcWrite));
  std::this_thread::sleep_for(kIcTime);
  const std::uint32_t answer = RODEO_TRY(cores.read(reg("ic_read")));
  if ((answer & kIcReady) == 0 || (answer & kIcEmpty) != 0)
    return cores.failed(fmt::format("the GBTx did not confirm the write to register {}: {:#010x}", address, answer));
  return {};
}

Result<std::uint8_t> read_ic(Card& card, unsigned link, std::uint16_t address) {
  const Cores cores = RODEO_TRY(Cores::of(card, link));
  RODEO_TRY(cores.write(reg("ic_write_configuration"), kIcConfiguration));
  RODEO_TRY(cores.write(reg("ic_write"), address));
  RODEO_TRY(cores.pulse(reg("ic_command"), kIcPush));
  RODEO_TRY(cores.pulse(reg("ic_command"), kIcRead));
  std::this_thread::sleep_for(kIcTime);
  RODEO_TRY(cores.pulse(reg("ic_command"), kIcPop));
  const std::uint32_t answer = RODEO_TRY(cores.read(reg("ic_read")));
  if ((answer & kIcReady) == 0 || (answer & kIcEmpty) != 0)
    return cores.failed(fmt::format("the GBTx did not answer for register {}: {:#010x}", address, answer));
  return static_cast<std::uint8_t>(answer);
}

Result<void> reset_slow_control(Card& card, unsigned link) {
  const Cores cores = RODEO_TRY(Cores::of(card, link));
  return cores.pulse(reg("slow_control_reset"), 1);
}

}  // namespace rodeo::card
