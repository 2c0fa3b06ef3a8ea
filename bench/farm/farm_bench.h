// A farm's supervisor under load: the real one, connected over the network to processes that stand for nodes, readouts and
// trigger.
#pragma once

#include <cstdint>

namespace rodeo::bench {

struct FarmBenchSettings {
  std::uint32_t nodes = 2656;
  std::uint32_t readouts = 600;
  std::uint32_t slots = 32;
  std::uint32_t at_once = 16;  ///< decisions in one message of a node
  double rate_hz = 0;          ///< trigger rate; 0: as fast as the farm accepts triggers
  double seconds = 5;
};

struct FarmBenchResult {
  double seconds = 0;
  double cpu_seconds = 0;  ///< CPU time of the supervisor's process, all threads
  // Rates within `seconds`:
  double assignments = 0;
  double decisions = 0;
  double clears = 0;    ///< events cleared by all readouts
  double requests = 0;  ///< requests of nodes
  double batches = 0;   ///< batches of clears to all readouts
  // Totals of the whole bench:
  std::uint64_t events = 0;
  std::uint64_t assigned_twice = 0;
  std::uint64_t undecided = 0;
  std::uint64_t uncleared = 0;  ///< pairs of event and readout that were not cleared
  std::uint64_t cleared_twice = 0;
  std::uint64_t cleared_early = 0;
  std::uint64_t other_batches = 0;  ///< readouts that received other batches than the first
  std::uint64_t failures = 0;       ///< failures of stand-ins, and of the supervisor's counters
  std::uint64_t mismatches() const {
    return assigned_twice + undecided + uncleared + cleared_twice + cleared_early + other_batches + failures;
  }
};

/// Forks; call it before there are threads. Throws SetupError.
FarmBenchResult run_farm_bench(const FarmBenchSettings& settings);

}  // namespace rodeo::bench
