// Consecutive accepted triggers: what the authority hands out and cards make data for.
#pragma once

#include <cstdint>

namespace rodeo::trigger {

/// Triggers of one ECR period: id of trigger i is l1id + i (24 bits go round, the ECR counter stays).
struct TriggerRange {
  std::uint64_t sequence = 0;  ///< of the first, counted from the authority's begin
  std::uint32_t l1id = 0;      ///< of the first, with the ECR counter
  std::uint32_t count = 0;
  std::uint32_t orbit = 0;  ///< when the first was accepted

  std::uint32_t l1id_of(std::uint32_t i) const { return (l1id & 0xff000000U) | ((l1id + i) & 0xffffffU); }
  bool operator==(const TriggerRange&) const = default;
};

}  // namespace rodeo::trigger
