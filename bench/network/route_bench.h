// The router's benchmark: FELIX blocks made beforehand, the product's decoder and publisher in one process, a subscriber that proves in another.
#pragma once

#include <cstdint>
#include <string>

namespace rodeo::bench {

struct RouteBenchSettings {
  std::string provider = "tcp";
  std::uint32_t links = 192;
  std::uint32_t subscribed = 0;  ///< links that somebody wants; 0: all
  std::uint32_t chunk_bytes = 40;
  std::uint32_t page_bytes = 64U << 10;
  bool discard = false;  ///< the subscriber counts chunks, and looks at no byte of them
  double seconds = 3;
};

/// Medians of rounds. Chunks are those that the subscriber has had.
struct RouteBenchResult {
  double seconds = 0;
  double chunks_per_second = 0;
  double chunks_per_core_second = 0;       ///< of the router's CPU
  double read_chunks_per_core_second = 0;  ///< those that nobody wants included
  double unwanted_cost =
      0;  ///< CPU time of a chunk that nobody wants, as a share of that of one that is wanted; where there are some
  double payload_bytes_per_second = 0;
  double copy_ceiling_bytes_per_second = 0;
  double router_cpu_seconds = 0;  ///< of all rounds
  double subscriber_cpu_seconds = 0;
  std::uint64_t input_bytes = 0;
  std::uint64_t chunks = 0;  ///< each of them proven unless `discard`
  std::uint64_t lost = 0;
  std::uint64_t mismatches = 0;
};

/// Throws SetupError: what the network says, bench.processes.
RouteBenchResult run_route_bench(const RouteBenchSettings& settings);

}  // namespace rodeo::bench
