// The latency benchmark: the wait of a complete event for its first consumer, at a trigger rate that the machine can
// sustain.
#pragma once

#include <cstdint>

#include "base/registry.h"

namespace rodeo::bench {

struct LatencyBenchSettings {
  std::uint32_t links = 192;
  std::uint32_t chunk_bytes = 40;
  std::uint32_t workers = 1;
  double rate_hz = 100e3;
  double seconds = 3;
  bool pinned = true;  ///< worker i on CPU i, the generator's thread on the CPU after them
};

struct LatencyBenchResult {
  double seconds = 0;
  double cpu_seconds = 0;       ///< CPU time of the whole process
  std::uint64_t fragments = 0;  ///< fragments in the latencies
  std::uint64_t incomplete = 0;
  std::uint64_t lost = 0;         ///< lost chunks
  std::uint64_t unaccounted = 0;  ///< chunks that were sent and are in no fragment and no counter
  std::uint64_t vetoed = 0;       ///< triggers that the generator refused because no page was free
  std::uint64_t p50_ns = 0;
  std::uint64_t p99_ns = 0;
  std::uint64_t max_ns = 0;
  bool generator_has_a_core = false;  ///< false: shares a core with a worker; latencies include waits for the scheduler
};

/// Runs generator, GBT builder (spinning workers) and a releasing consumer. A latency is the time from the hand-over of the
/// page with an event's last run to the worker (Fragment::handed_over_ns) to the first consumer's insert(). Throws
/// SetupError for impossible settings.
LatencyBenchResult run_latency_bench(const LatencyBenchSettings& settings, const base::ComponentRegistry& registry);

}  // namespace rodeo::bench
