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

Result<std::vector<pci::ByteLock>> keep_others_from_reading(Card& card) {
  std::vector<pci::ByteLock> locks;
  for (unsigned channel = 0; channel < dma_channels_of(card.type()); ++channel) {
    auto owner = card.lock(channel, fmt::format("DMA channel {} of {}", channel, card.address().text()));
    if (!owner) return std::unexpected(owner.error());
    if (*owner) locks.push_back(std::move(**owner));
  }
  return locks;
}

}  // namespace rodeo::card
