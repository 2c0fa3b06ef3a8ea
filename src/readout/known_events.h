// The number of events of a run. The ROBs of one input, and the groups of a ROB in FULL mode, all build the same events.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace rodeo::readout {

/// The events that one ROB or group knows.
struct KnownEvents {
  std::uint64_t first = 0;  ///< global id of the first event; all ones: not known
  std::uint64_t count = 0;  ///< number of events, in fragments or skipped
};

/// Counts from the earliest first event to the last. A ROB or group with fewer events has lost the difference.
inline std::uint64_t events_of_all(std::span<const KnownEvents> known) {
  constexpr int kEpoch = 24;  // bits; between two resets ids count the events
  std::uint64_t first = ~std::uint64_t{0};
  for (const KnownEvents& one : known) first = std::min(first, one.first);
  std::uint64_t most = 0;
  for (const KnownEvents& one : known)
    most = std::max(most, one.count + (one.first >> kEpoch == first >> kEpoch ? one.first - first : 0));
  return most;
}

}  // namespace rodeo::readout
