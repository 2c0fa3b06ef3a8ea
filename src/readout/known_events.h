// How many events a run had, by those who all build the same events: the ROBs of one input, and the groups of a ROB in FULL mode.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace rodeo::readout {

/// What one of them knows.
struct KnownEvents {
  std::uint64_t first = 0;  ///< global id; all ones: not known
  std::uint64_t count = 0;  ///< in fragments, or skipped
};

/// From the first that any of them has, to the last: who has fewer lost the difference, wherever it was.
inline std::uint64_t events_of_all(std::span<const KnownEvents> known) {
  constexpr int kEpoch = 24;  // bits: between two resets ids count the events
  std::uint64_t first = ~std::uint64_t{0};
  for (const KnownEvents& one : known) first = std::min(first, one.first);
  std::uint64_t most = 0;
  for (const KnownEvents& one : known)
    most = std::max(most, one.count + (one.first >> kEpoch == first >> kEpoch ? one.first - first : 0));
  return most;
}

}  // namespace rodeo::readout
