// Whether somebody reads a card's data: what would disturb that keeps the DMA channels to itself meanwhile. And what to look at when none come.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "card/card.h"
#include "card/pci/lock.h"

namespace rodeo::card {

/// DMA channels of a card of this type; 0 if it has none that are known here.
unsigned dma_channels_of(CardType type);

/// Takes the lock of every DMA channel of the card, for as long as what is returned lives. Does not wait. Error card.locked,
/// with who it is, if somebody owns one.
Result<std::vector<pci::ByteLock>> keep_others_from_reading(Card& card);

/// What to do about a card that brings no data: its generator is off, or where to look.
std::string advice_without_data(Card& card);

}  // namespace rodeo::card
