// The veto rule of the laboratory, fixed before any measurement: it rejects runs whose result depends on the machine instead
// of the network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "network/laboratory/settings.h"

namespace rodeo::network::laboratory {

/// The disturbances by the laboratory itself in one run.
struct Disturbance {
  double request_lateness_seconds = 0;   ///< lateness of the latest request relative to the schedule
  double answer_lateness_seconds = 0;    ///< the longest wait of a request in a readout's kernel before it was read
  double clock_error_seconds = 0;        ///< error of the common start of nodes, if hosts have clocks of their own
  std::uint64_t machine_drops = 0;       ///< packets that this machine lost between network cards (softnet backlog)
  std::uint64_t link_drops = 0;          ///< losses at the uplink or at a readout, where no loss is allowed
  std::int64_t left_in_pool_bytes = 0;   ///< bytes in the shared buffer after the drain
  double counting_lateness_seconds = 0;  ///< time from the start to the start of counting drops and occupancy
};

/// The rule. A run is vetoed if it exceeds one of these limits.
struct VetoRule {
  double most_added_occupancy = 0.05;  ///< increase of the largest occupancy by lateness: added_by_stall()
  double most_not_counted = 0.05;      ///< share of a run that passed before drops and occupancy were counted
  unsigned most_in_a_row = 3;          ///< this number of vetoed runs in a row fails the point
};

/// The relative growth of the largest occupancy of periodic events if all nodes stall for this time and then request all
/// overdue events at once: superposition over one uplink (formula/superposition.h). 0 if only one event can be under way.
double added_by_stall(const Settings& settings, double stall_seconds);

/// The reasons for rejecting a run; empty if the run counts.
std::vector<std::string> veto_reasons(const Settings& settings, const Disturbance& disturbance, const VetoRule& rule);

}  // namespace rodeo::network::laboratory
