// Global ids of events in approximate order, from the L1 id and 24 bits of the rounds: a 32-byte part has no room for more
// bits.
#pragma once

#include <cstdint>

#include "formats/event_ids.h"

namespace rodeo::readout {

/// Consecutive events must be less than 2^23 rounds apart.
class GlobalIds {
 public:
  static constexpr std::uint32_t kRoundBits = 24;
  static constexpr std::uint32_t kRoundMask = (1U << kRoundBits) - 1;

  explicit GlobalIds(formats::IdLayout ids) : ids_(ids) {}

  std::uint64_t of(L1Id l1id, std::uint32_t rounds) {
    constexpr unsigned kUnused = 32 - kRoundBits;
    const auto difference = static_cast<std::int32_t>((rounds - static_cast<std::uint32_t>(rounds_)) << kUnused) >> kUnused;
    rounds_ += static_cast<std::uint64_t>(std::int64_t{difference});
    return ids_.global_id(rounds_, ids_.counter_bits() == 32 ? l1id.value : l1id.l1());
  }

 private:
  const formats::IdLayout ids_;
  std::uint64_t rounds_ = 0;
};

}  // namespace rodeo::readout
