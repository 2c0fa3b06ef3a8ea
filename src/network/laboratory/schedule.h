// Time, node and size of event n: a pure function of the scenario and n, so that nodes agree without messages.
#pragma once

#include <cstdint>
#include <vector>

#include "network/simulator/scenario.h"

namespace rodeo::network::laboratory {

struct ScheduledEvent {
  std::uint64_t number = 0;
  std::int64_t at_ns = 0;   ///< time relative to the start of counting; negative during the warm-up
  std::uint64_t bytes = 0;  ///< payload of the event, all readouts together
};

/// The events of one node from -warm_up to the end of the duration, in order of time. They come from the simulator's source,
/// and are equal on every machine.
std::vector<ScheduledEvent> schedule_of(std::uint32_t node, const Scenario& scenario, double warm_up_seconds);

/// Bytes of readout r of R in an event: an even share; the first readouts have one byte more if there is a remainder.
std::uint64_t fragment_bytes(std::uint64_t event_bytes, std::uint32_t readout, std::uint32_t readouts);

}  // namespace rodeo::network::laboratory
