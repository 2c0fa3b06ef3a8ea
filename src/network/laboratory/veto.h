// The veto rule of the laboratory, fixed before anything is measured: when the machine, not the network, made the result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "network/laboratory/settings.h"

namespace rodeo::network::laboratory {

/// What the laboratory knows of its own faults in one run.
struct Disturbance {
  double request_lateness_seconds = 0;   ///< the latest request, against its time in the schedule
  double answer_lateness_seconds = 0;    ///< the longest that a request lay in a readout's kernel before it was read
  double clock_error_seconds = 0;        ///< of starting nodes at one time, where hosts have clocks of their own
  std::uint64_t machine_drops = 0;       ///< packets that this machine lost between network cards (softnet backlog)
  std::uint64_t link_drops = 0;          ///< at the uplink or at a readout, where nothing may be lost
  std::int64_t left_in_pool_bytes = 0;   ///< in the shared buffer after everything has drained
  double counting_lateness_seconds = 0;  ///< drops and occupancy were counted from so long after the start
};

/// The rule. A run is vetoed if one of these is exceeded.
struct VetoRule {
  double most_added_occupancy = 0.05;  ///< by which lateness may have raised the largest occupancy: added_by_stall()
  double most_not_counted = 0.05;      ///< share of a run that may have passed before drops and occupancy were counted
  unsigned most_in_a_row = 3;          ///< that many vetoed runs fail the point
};

/// By what share the largest occupancy of periodic events grows if everything stands still for that long and all events that fell due are
/// then requested at once: superposition over one uplink (formula/superposition.h). 0 if nodes can have no second event under way.
double added_by_stall(const Settings& settings, double stall_seconds);

/// Why a run does not count; empty if it does.
std::vector<std::string> veto_reasons(const Settings& settings, const Disturbance& disturbance, const VetoRule& rule);

}  // namespace rodeo::network::laboratory
