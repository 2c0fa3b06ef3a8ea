// Accepted triggers that some link has not sent yet, with the values that their chunks need.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rodeo/ids.h"

namespace rodeo::input {

struct AcceptedTrigger {
  std::uint64_t header = 0;  ///< first word of the trigger's chunks
  std::uint64_t time_ns = 0;
  L1Id l1id;
};

/// The last `span` accepted triggers, by their numbers, which count from 0.
class TriggerHistory {
 public:
  explicit TriggerHistory(std::size_t span) : mask_(std::bit_ceil(span) - 1), ring_(mask_ + 1) {}

  AcceptedTrigger& operator[](std::uint64_t trigger) { return ring_[trigger & mask_]; }
  const AcceptedTrigger& operator[](std::uint64_t trigger) const { return ring_[trigger & mask_]; }

 private:
  std::size_t mask_;
  std::vector<AcceptedTrigger> ring_;
};

}  // namespace rodeo::input
