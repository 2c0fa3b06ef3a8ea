// Global ids: extended L1 ids, whose ECR counter has 8 bits, continued in 64.
#pragma once

#include <cstdint>

#include "rodeo/ids.h"

namespace rodeo::readout {

/// Events in about their order: two that follow each other are less than 128 resets apart.
class GlobalIds {
 public:
  std::uint64_t of(L1Id l1id) {
    const auto step = static_cast<std::int32_t>(l1id.value - static_cast<std::uint32_t>(last_));
    const bool behind_the_first = step < 0 && last_ < -std::int64_t{step};
    last_ = begun_ && !behind_the_first ? last_ + step : l1id.value;
    begun_ = true;
    return static_cast<std::uint64_t>(last_);
  }

 private:
  std::int64_t last_ = 0;
  bool begun_ = false;
};

}  // namespace rodeo::readout
