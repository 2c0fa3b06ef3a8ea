// The settings of one point of the laboratory: the simulator's scenario, and how to run it.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "network/simulator/scenario.h"

namespace rodeo::network::laboratory {

/// Nodes send requests at once and need no time for processing. So only these settings have an effect: in Traffic arrivals,
/// assignment, sizes, MTU and events in flight; in TcpSettings the shortest retransmission time-out.
struct Settings : Scenario {
  Settings() { duration_ns = 3'000'000'000; }

  std::string congestion_control = "cubic";  ///< name of the congestion control in the kernel
  bool limit_readout_links = false;  ///< shape readouts to topology.readout_link_bps; else they send as fast as the machine
  std::uint32_t repeats = 1;
};

/// True if plain port queues can make the buffer: it has a limit for each port, no shared memory, no cells.
bool buffered_by_shapers(const SwitchBuffer& buffer);

/// Refuses zero counts and sizes, impossible MTUs, buffers that the kernel cannot make, and more load than a link carries.
/// Errors: network.zero, network.overload, network.unsupported.
Result<void> check(const Settings& settings);

/// Refuses a buffer that the laboratory's switch cannot have. Error network.unsupported.
Result<void> check(const SwitchBuffer& buffer);

/// Time before counting starts, in which TCP windows open: six events for each node.
double warm_up_seconds(const Scenario& scenario);

}  // namespace rodeo::network::laboratory
