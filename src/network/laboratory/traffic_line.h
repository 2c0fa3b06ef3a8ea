// Settings of a run as a line for agents, and back.
#pragma once

#include "network/laboratory/message.h"
#include "network/laboratory/settings.h"

namespace rodeo::network::laboratory {

inline constexpr std::uint64_t kAgentVersion = 2;

/// What decides the schedule and how long a node works on it.
struct RunOrder {
  Settings settings;  ///< topology's counts, traffic, seconds and seed
  std::uint32_t node = 0;
  std::uint64_t start_ns = 0;
  double drain_seconds = 0;
};

Line line_of(const RunOrder& order);
/// Error network.agent. Counts, rates and lengths are checked: a schedule of it ends and fits into memory.
Result<RunOrder> run_order_of(const Line& line);

}  // namespace rodeo::network::laboratory
