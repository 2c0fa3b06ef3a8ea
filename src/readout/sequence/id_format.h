// The format of a link's ids, as its extractor gives them: L1 ids of 1 to 32 bits that wrap, or 24 bits below a reset
// counter.
#pragma once

#include <algorithm>
#include <cstdint>

#include "formats/event_ids.h"
#include "rodeo/trigger.h"

namespace rodeo::readout {

class IdFormat {
 public:
  IdFormat() = default;
  explicit IdFormat(const TriggerFields& fields)
      : low_mask_(fields.l1id_bits >= 32 ? 0xffffffffU : (1U << fields.l1id_bits) - 1),
        ids_(formats::IdLayout::of(fields)),
        has_ecr_(fields.has_ecr) {}

  std::uint32_t low_mask() const { return low_mask_; }
  bool has_ecr() const { return has_ecr_; }
  const formats::IdLayout& ids() const { return ids_; }

  /// The counter's period.
  std::uint64_t period() const { return std::uint64_t{low_mask_} + 1; }

  /// True if ids show a reset: in a reset counter, or as a restart near zero. With fewer than 16 bits it looks like a jump.
  bool shows_restarts() const { return has_ecr_ || low_mask_ >= 0xffff; }

  /// The id of the place with this number of resets and this index within the epoch.
  std::uint32_t id_at(std::uint64_t resets, std::uint64_t index) const {
    const std::uint32_t low = static_cast<std::uint32_t>(index) & low_mask_;
    return has_ecr_ ? static_cast<std::uint32_t>(resets & 0xff) << 24 | low : low;
  }

  /// The id n events later, within an epoch.
  std::uint32_t advance(std::uint32_t id, std::uint64_t n) const {
    const std::uint32_t low = static_cast<std::uint32_t>(id + n) & low_mask_;
    return has_ecr_ ? (id & 0xff000000U) | low : low;
  }

  /// How many leading ids count up from `expected`.
  std::uint32_t count_consecutive(const std::uint32_t* ids, std::uint32_t n, std::uint32_t expected) const {
    const std::uint32_t fixed = expected & ~low_mask_;
    const std::uint32_t low = expected & low_mask_;
    if (low_mask_ - low >= n) {
      // No wrap ahead: a loop without branches, which vectorises. The first difference is searched only if there is one.
      std::uint32_t difference = 0;
      for (std::uint32_t i = 0; i < n; ++i) difference |= ids[i] ^ (expected + i);
      if (difference == 0) return n;
    }
    for (std::uint32_t i = 0; i < n; ++i) {
      if (ids[i] != (fixed | ((low + i) & low_mask_))) return i;
    }
    return n;
  }

 private:
  std::uint32_t low_mask_ = 0xffffff;
  formats::IdLayout ids_ = {.bits = 24, .has_resets = false};
  bool has_ecr_ = false;
};

}  // namespace rodeo::readout
