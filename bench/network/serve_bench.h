// The benchmark of serving fragments: the readouts' own handlers, full of fragments; nodes fetch and clear events, and check
// every byte.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace rodeo::bench {

struct ServeBenchSettings {
  std::string provider = "tcp";
  std::uint32_t fragment_bytes = 7700;
  std::uint32_t readouts = 1;
  std::uint32_t nodes = 1;
  std::uint32_t events = 32;    ///< events that a node has under way
  std::uint32_t kept = 16'384;  ///< fragments of a readout
  std::uint32_t page_bytes = 64U << 10;
  double seconds = 3;  ///< duration of each measurement, in rounds
};

struct ServeBenchResult {
  double seconds = 0;
  double fragments_per_second = 0;
  double fragments_per_core_second =
      0;                        ///< per CPU second of the readouts' process, which also runs the stand-ins for builders
  double bytes_per_second = 0;  ///< bytes of ROD data
  double bytes_per_core_second = 0;
  double bare_bytes_per_second = 0;  ///< pages of this size over the same network, medians of the same rounds
  double bare_bytes_per_core_second = 0;
  double filled_bytes_per_second = 0;  ///< bare pages, each copied before it is sent
  double of_bare = 0;
  double of_bare_per_core = 0;
  double of_filled = 0;
  double events_per_second = 0;
  double latency_p50_us = 0;  ///< time from the first request for an event to its last fragment
  double latency_p99_us = 0;

  // The proof
  std::uint64_t verified_fragments = 0;
  std::uint64_t mismatches = 0;
  std::uint64_t lost = 0;
};

/// Readouts are threads of one process, nodes of another. Throws SetupError.
ServeBenchResult run_serve_bench(const ServeBenchSettings& settings);

}  // namespace rodeo::bench
