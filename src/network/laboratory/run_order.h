// The order for a run to a node's agent, and its form as JSON.
#pragma once

#include "network/simulator/scenario.h"
#include "settings/json.h"

namespace rodeo::network::laboratory {

inline constexpr std::uint64_t kAgentVersion = 3;

/// The settings that determine the schedule, and the time that a node works on it.
struct RunOrder {
  Scenario scenario;
  std::uint32_t node = 0;
  std::uint64_t start_ns = 0;
  std::uint64_t drain_ns = 0;
};

/// The order as JSON: {"do": "run", ..., "settings": {name: text}}.
settings::Json json_of(const RunOrder& order);
/// Errors: network.agent, those of scenario_of() and check(). The schedule of an accepted order ends and fits into memory.
Result<RunOrder> run_order_of(const settings::Json& said);

}  // namespace rodeo::network::laboratory
