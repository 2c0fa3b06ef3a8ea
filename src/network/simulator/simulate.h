// The simulator: one call, one run. A pure function of the scenario, on one thread.
#pragma once

#include <cstdint>
#include <functional>

#include "base/error.h"
#include "network/simulator/outcome.h"
#include "network/simulator/scenario.h"

namespace rodeo::network {

/// One point of the occupancy of a rack's switch, over an interval that ends at time_ns.
struct OccupancySample {
  std::uint64_t time_ns = 0;
  std::uint32_t rack = 0;
  std::uint64_t max_bytes = 0;   // largest within the interval; bytes of frames
  std::uint64_t last_bytes = 0;  // occupancy at the end of the interval
  std::uint64_t drops = 0;       // drops within the interval
};

/// One connection at the end of the run.
struct FlowRecord {
  std::uint32_t readout = 0;
  std::uint32_t node = 0;
  std::uint64_t fragments = 0;  // number of whole fragments received
  std::uint64_t segments_sent = 0;
  std::uint64_t segments_dropped = 0;
  std::uint64_t retransmits = 0;
  std::uint64_t fast_recoveries = 0;
  std::uint64_t probes = 0;
  std::uint64_t timeouts = 0;
  std::uint32_t window = 0;  // window in segments
  std::uint32_t slow_start_threshold = 0;
  std::uint64_t smoothed_rtt_ns = 0;
};

/// Callbacks of simulate() on its own thread while it runs; any may be empty.
struct Observers {
  /// Called about ten times a second of wall time, with the virtual time reached. If it returns false, the run ends with the
  /// outcome up to now.
  std::function<bool(std::uint64_t virtual_ns)> progress = {};
  std::function<void(const OccupancySample&)> occupancy = {};
  std::uint64_t occupancy_interval_ns = 10'000;
  std::function<void(const FlowRecord&)> flow = {};
};

/// Runs the scenario. Blocks. Memory depends on the topology and the data in flight, not on the duration. Any number of
/// threads may run their own simulations. Errors: those of check(Scenario).
Result<Outcome> simulate(const Scenario& scenario, const Observers& observers = {});

/// The checks of simulate(). Errors: network.zero, network.topology, network.size, network.overload.
Result<void> check(const Scenario& scenario);

}  // namespace rodeo::network
