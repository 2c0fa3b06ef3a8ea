#include "card/operations/siu.h"

#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "card/card_wait.h"
#include "card/operations/require_type.h"
#include "card_registers/crorc.h"

namespace rodeo::card {

namespace crorc = card_registers::crorc;
using crorc::reg;

namespace {

// A DDL command: destination 3:0, command 7:4, transaction 11:8. An answer has its sender, its kind and the transaction in
// the same bits.
constexpr std::uint32_t kSiu = 2;
constexpr std::uint32_t kReadAndClearStatus = 0;
constexpr std::uint32_t kInterfaceStatus = 12;
constexpr std::chrono::milliseconds kPatience{100};

constexpr std::uint32_t kErrorBit = 1U << 31;
constexpr std::array<std::pair<unsigned, const char*>, 14> kErrors{{{30, "event or block too long"},
                                                                    {29, "illegal data or status from the front end"},
                                                                    {28, "transmit FIFO overflow"},
                                                                    {27, "illegal word in a block write"},
                                                                    {26, "ordered set inside a frame"},
                                                                    {25, "invalid character in a frame"},
                                                                    {24, "CRC error"},
                                                                    {23, "check command error"},
                                                                    {22, "data outside of a frame"},
                                                                    {21, "illegal frame delimiter"},
                                                                    {20, "frame too long"},
                                                                    {19, "receive FIFO overflow"},
                                                                    {18, "error in a received frame"},
                                                                    {17, "link protocol error"}}};
constexpr std::array<const char*, 8> kPortStates{
    "power-on reset", "offline",  "online", "waiting for power off", "offline, no signal", "offline, no synchronisation",
    "power off",      "undefined"};

Result<void> require_link(Card& card, unsigned channel) {
  RODEO_TRY(require_type(card, CardType::crorc, "the SIU"));
  RODEO_TRY(require_range("the channel", channel, 0, crorc::kLinks - 1));
  const auto csr = RODEO_TRY(card.read(reg("channel_csr"), channel));
  if (crorc::kLinkDown.of(csr) == 0) return {};
  return std::unexpected(Error{"card.link_down", fmt::format("link {} is down: the SIU cannot answer", channel),
                               card.address().text(), "check the fibre and the power of the front end"});
}

/// The oldest answer; error card.timeout if none comes in time.
Result<std::uint32_t> wait_answer(Card& card, unsigned channel) {
  CardWait wait(kPatience);
  while (true) {
    const auto csr = card.read(reg("channel_csr"), channel);
    if (!csr) return csr;
    if (crorc::kStatusNotEmpty.of(*csr) != 0) return card.read(reg("ddl_status"), channel);
    if (wait.over()) {
      return std::unexpected(
          Error{"card.timeout", fmt::format("the SIU of link {} did not answer within {} ms", channel, kPatience.count()),
                card.address().text(), "`rodeo card status` says whether the link is up; --reset resets the SIU"});
    }
    std::this_thread::sleep_for(std::chrono::microseconds{100});
  }
}

/// Discards old answers, at most as many as a mailbox can hold.
Result<void> drain(Card& card, unsigned channel) {
  for (int i = 0; i < 16; ++i) {
    const auto csr = RODEO_TRY(card.read(reg("channel_csr"), channel));
    if (crorc::kStatusNotEmpty.of(csr) == 0) return {};
    RODEO_TRY(card.read(reg("ddl_status"), channel));
  }
  return {};
}

}  // namespace

Result<SiuStatus> read_siu_status(Card& card, unsigned channel) {
  RODEO_TRY(require_link(card, channel));
  RODEO_TRY(drain(card, channel));
  const std::uint32_t transaction = 1;
  const std::uint32_t command = kSiu | kReadAndClearStatus << 4 | transaction << 8;
  RODEO_TRY(card.write(reg("ddl_command"), command, channel));
  const auto answer = RODEO_TRY(wait_answer(card, channel));
  if ((answer & 0xfff) != (kSiu | kInterfaceStatus << 4 | transaction << 8)) {
    return std::unexpected(Error{"card.ddl",
                                 fmt::format("link {} answered {:#010x}, which is not a status of the SIU", channel, answer),
                                 card.address().text(), "ask again; --reset resets the SIU"});
  }
  RODEO_TRY(drain(card, channel));  // the acknowledgement that follows
  SiuStatus status{answer, {}};
  if ((answer & kErrorBit) != 0) {
    for (const auto& [bit, text] : kErrors) {
      if ((answer >> bit & 1) != 0) status.conditions.emplace_back(text);
    }
  } else {
    if ((answer >> 16 & 1) != 0) status.conditions.emplace_back("in loop-back mode");
    if ((answer >> 15 & 1) != 0) status.conditions.emplace_back("a transaction of the front end is open");
  }
  status.conditions.emplace_back(fmt::format("port: {}", kPortStates[answer >> 12 & 7]));
  return status;
}

Result<void> reset_siu(Card& card, unsigned channel) {
  RODEO_TRY(require_link(card, channel));
  RODEO_TRY(drain(card, channel));
  RODEO_TRY(card.write(reg("ddl_command"), crorc::kCommandSiuReset, channel));
  RODEO_TRY(wait_answer(card, channel));
  return drain(card, channel);
}

}  // namespace rodeo::card
