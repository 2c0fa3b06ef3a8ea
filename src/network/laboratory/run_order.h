// What an agent that is a node is told of a run, and back.
#pragma once

#include "network/simulator/scenario.h"
#include "settings/json.h"

namespace rodeo::network::laboratory {

inline constexpr std::uint64_t kAgentVersion = 3;

/// What decides the schedule and how long a node works on it.
struct RunOrder {
  Scenario scenario;
  std::uint32_t node = 0;
  std::uint64_t start_ns = 0;
  std::uint64_t drain_ns = 0;
};

/// {"do": "run", ..., "settings": {name: text}}.
settings::Json json_of(const RunOrder& order);
/// Error network.agent, those of scenario_of() and check(). A schedule of what is taken ends and fits into memory.
Result<RunOrder> run_order_of(const settings::Json& said);

}  // namespace rodeo::network::laboratory
