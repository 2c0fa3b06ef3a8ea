// Operations that disturb a reader lock all DMA channels of the card. Also: advice for a card that sends no data.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "card/card.h"
#include "card/pci/lock.h"

namespace rodeo::card {

/// The number of DMA channels of a card of this type; 0 for an unknown type.
unsigned dma_channels_of(CardType type);

/// Takes the locks of all DMA channels of the card; the result holds them. Does not wait. Error card.locked, with the
/// owner's process, if a channel has an owner.
Result<std::vector<pci::ByteLock>> lock_out_readers(Card& card);

/// Advice for a card that sends no data: its generator is off, or the commands that show why.
std::string advice_without_data(Card& card);

}  // namespace rodeo::card
