// What one point of the laboratory is: the scenario, as the simulator has it, and how it is run.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "network/simulator/scenario.h"

namespace rodeo::network::laboratory {

/// Of Traffic, nodes ask at once and process in no time: arrivals, assignment, sizes, MTU and events in flight count, the rest does not. Of
/// TcpSettings, the shortest retransmission time-out does.
struct Settings : Scenario {
  Settings() { duration_ns = 3'000'000'000; }

  std::string congestion_control = "cubic";  ///< as the kernels have it
  bool limit_readout_links = false;  ///< shape readouts to topology.readout_link_bps; else they send as fast as the machine
  std::uint32_t repeats = 1;
};

/// Whether a buffer is one that plain queues of ports have: a limit of each port, nothing shared, no cells.
bool buffered_by_shapers(const SwitchBuffer& buffer);

/// What cannot be run: zero counts and sizes, MTUs that no frame has, buffers that the kernel cannot make, more load than a link carries.
/// Errors: network.zero, network.overload, network.unsupported.
Result<void> check(const Settings& settings);

/// A buffer that the laboratory's switch cannot have. Error network.unsupported.
Result<void> check(const SwitchBuffer& buffer);

/// How long nodes send before counting starts, so that TCP windows have opened: six events for each node.
double warm_up_seconds(const Scenario& scenario);

}  // namespace rodeo::network::laboratory
