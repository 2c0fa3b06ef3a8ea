#include "card/dma/felix_descriptor.h"

#include <chrono>
#include <thread>

#include <fmt/core.h>

#include "card/card_wait.h"

namespace rodeo::card {
namespace {

namespace felix = card_registers::felix;
using felix::reg;

constexpr std::chrono::milliseconds kObeyPatience{2000};

}  // namespace

Result<void> FelixDescriptor::set(bool on) {
  // The owners of all descriptors share this word, and a card has no atomic operations, so a lock admits one process at a
  // time.
  RODEO_TRY(card_.modify_at(0, reg("dma_enable").offset, {index_, 1}, on ? 1 : 0));
  CardWait wait(kObeyPatience);
  for (;;) {
    const auto status = RODEO_TRY(read(reg("dma_status")));
    const bool done = felix::kDone.of(static_cast<std::uint32_t>(status)) != 0;
    if (done != on) return {};
    if (wait.over())
      return std::unexpected(
          Error{"card.timeout",
                fmt::format("DMA descriptor {} did not {} in {} ms", index_, on ? "start" : "stop", kObeyPatience.count()),
                card_.address().text(), "reset the card"});
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace rodeo::card
