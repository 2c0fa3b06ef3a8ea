// When event n is requested, by which node and of what size: a pure function of settings, seed and n, so that nodes agree without asking.
#pragma once

#include <cstdint>
#include <vector>

#include "network/types.h"

namespace rodeo::network::laboratory {

struct ScheduledEvent {
  std::uint64_t number = 0;
  std::int64_t at_ns = 0;   ///< after the start of counting; negative while warming up
  std::uint64_t bytes = 0;  ///< payload, all readouts together
};

/// The events of one node from -warm_up to +seconds, in order of time. The same on every machine with the same libm.
std::vector<ScheduledEvent> schedule_of(std::uint32_t node, const Topology& topology, const Traffic& traffic,
                                        double warm_up_seconds, double seconds, std::uint64_t seed);

/// Bytes that readout r of R gives to an event: an even share, the remainder spread over the first ones.
std::uint64_t fragment_bytes(std::uint64_t event_bytes, std::uint32_t readout, std::uint32_t readouts);

}  // namespace rodeo::network::laboratory
