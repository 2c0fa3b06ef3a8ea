// The settings of one point of the laboratory: the simulator's scenario, and how to run it.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "network/simulator/scenario.h"

namespace rodeo::network::laboratory {

/// Nodes send requests at once and process in no time: of Traffic only arrivals, assignment, sizes, MTU and events in flight
/// have an effect, of TcpSettings only the shortest retransmission time-out.
struct Settings : Scenario {
  Settings() { duration_ns = 3'000'000'000; }

  std::string congestion_control = "cubic";  ///< the kernel's name for it
  bool limit_readout_links = false;  ///< shape readouts to topology.readout_link_bps; else they send as fast as the machine
  std::uint32_t repeats = 1;
};

/// Whether plain port queues can make a buffer: a limit a port, no shared memory, no cells.
bool buffered_by_shapers(const SwitchBuffer& buffer);

/// Refuses zero counts and sizes, impossible MTUs, buffers that the kernel cannot make, more load than a link carries.
/// Errors: network.zero, network.overload, network.unsupported.
Result<void> check(const Settings& settings);

/// Refuses a buffer that the laboratory's switch cannot have. Error network.unsupported.
Result<void> check(const SwitchBuffer& buffer);

/// Time before counting starts, in which TCP windows open: six events for each node.
double warm_up_seconds(const Scenario& scenario);

}  // namespace rodeo::network::laboratory
