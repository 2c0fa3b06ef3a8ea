#include "card/dma/data_taking.h"

#include <fmt/core.h>

#include "card_registers/crorc.h"
#include "card_registers/felix.h"

namespace rodeo::card {

unsigned dma_channels_of(CardType type) {
  switch (type) {
    case CardType::cru: return 1;
    case CardType::crorc: return card_registers::crorc::kLinks;
    case CardType::felix: return card_registers::felix::kToHostDescriptors;
    case CardType::unknown: break;
  }
  return 0;
}

Result<std::vector<pci::ByteLock>> lock_out_readers(Card& card) {
  std::vector<pci::ByteLock> locks;
  for (unsigned channel = 0; channel < dma_channels_of(card.type()); ++channel) {
    auto owner = RODEO_TRY(card.lock(channel, fmt::format("DMA channel {} of {}", channel, card.address().text())));
    if (owner) locks.push_back(std::move(*owner));
  }
  return locks;
}

std::string advice_without_data(Card& card) {
  if (card.type() == CardType::felix) {
    const auto generator = card.read64(card_registers::felix::reg("generator_control"));
    if (generator && (*generator & 1U) == 0)
      return fmt::format(
          "its generator is off: `rodeo card reg write --id {} generator_control 1` switches it on; a readout with "
          "start_generator = true and `card bench dma --data-source internal` do so for as long as they read",
          card.address().text());
  }
  return card.function().capabilities().emulated
             ? "see that links are enabled (rodeo card status), and which part is busy or not ready (rodeo emulate status)"
             : "see that links are enabled and triggers come: rodeo card status, rodeo card triggers";
}

}  // namespace rodeo::card
