// One DMA descriptor of a FELIX: switches it on and off, and waits until the card has done so.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "card/card.h"
#include "card_registers/felix.h"

namespace rodeo::card {

class FelixDescriptor {
 public:
  /// The card must outlive the object.
  FelixDescriptor(Card& card, unsigned index) : card_(card), index_(index) {}

  unsigned index() const { return index_; }

  Result<std::uint64_t> read(const card_registers::Register& what) { return card_.read64(what, index_); }
  Result<void> write(const card_registers::Register& what, std::uint64_t value) { return card_.write(what, value, index_); }

  /// Call before enable(): makes every step back of the read pointer begin a new lap. By default only a step of more than 16
  /// MiB does, and the card would overwrite a smaller memory.
  Result<void> count_every_lap() { return card_.write(card_registers::felix::reg("dma_pointer_gap"), 0); }

  /// Return when the descriptor runs or has stopped. Error card.timeout after two seconds in which the card answers.
  Result<void> enable() { return set(true); }
  Result<void> disable() { return set(false); }

 private:
  Result<void> set(bool on);

  Card& card_;
  unsigned index_;
};

}  // namespace rodeo::card
