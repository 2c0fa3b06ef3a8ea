// What one point of the laboratory is: the network, the traffic, the buffer, and how it is run.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "network/types.h"

namespace rodeo::network::laboratory {

/// Of Traffic, nodes ask at once and process in no time: arrivals, assignment, sizes, MTU and events in flight count, the rest does not.
struct Settings {
  Topology topology;
  Traffic traffic;
  SwitchBuffer buffer;  ///< of each rack's switch; no virtual output queues
  std::string congestion_control = "cubic";
  std::chrono::nanoseconds smallest_retransmission_timeout = std::chrono::milliseconds(200);
  bool limit_readout_links = false;  ///< shape readouts to topology.readout_link_bps; else they send as fast as the machine
  double seconds = 3;
  std::uint32_t repeats = 1;
  std::uint64_t seed = 1;
};

/// Whether a buffer is one that plain queues of ports have: a limit of each port, nothing shared, no cells.
bool buffered_by_shapers(const SwitchBuffer& buffer);

/// What cannot be run: zero counts and sizes, MTUs that no frame has, buffers that the kernel cannot make, more load than a link carries.
/// Errors: network.zero, network.overload, network.unsupported.
Result<void> check(const Settings& settings);

/// How long nodes send before counting starts, so that TCP windows have opened: six events for each node.
double warm_up_seconds(const Settings& settings);

}  // namespace rodeo::network::laboratory
