// One DMA descriptor of a FELIX: on and off, and waiting until the card has seen it.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "card/card.h"
#include "card_registers/felix.h"

namespace rodeo::card {

class FelixDescriptor {
 public:
  /// The card must outlive it.
  FelixDescriptor(Card& card, unsigned index) : card_(card), index_(index) {}

  unsigned index() const { return index_; }

  Result<std::uint64_t> read(const card_registers::Register& what) { return card_.read64(what, index_); }
  Result<void> write(const card_registers::Register& what, std::uint64_t value) { return card_.write(what, value, index_); }

  /// Before enable(): the read pointer begins a new lap whenever it goes back. By default it does so only for steps of more than 16 MiB, and a smaller
  /// memory would be written over.
  Result<void> see_every_lap() { return card_.write(card_registers::felix::reg("dma_pointer_gap"), 0); }

  /// Returns when the card runs it, or runs it no more; card.timeout after two seconds in which the card answers.
  Result<void> enable() { return set(true); }
  Result<void> disable() { return set(false); }

 private:
  Result<void> set(bool on);

  Card& card_;
  unsigned index_;
};

}  // namespace rodeo::card
