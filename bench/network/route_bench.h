// The router's benchmark: prepared FELIX blocks, the product's decoder and publisher in one process, and a checking
// subscriber in another.
#pragma once

#include <cstdint>
#include <string>

namespace rodeo::bench {

struct RouteBenchSettings {
  std::string provider = "tcp";
  std::uint32_t links = 192;
  std::uint32_t subscribed = 0;  ///< links with a subscription; 0: all
  std::uint32_t chunk_bytes = 40;
  std::uint32_t page_bytes = 64U << 10;
  bool discard = false;  ///< the subscriber counts chunks and does not read their bytes
  double seconds = 3;
};

/// Medians of rounds. Only chunks that the subscriber received are counted.
struct RouteBenchResult {
  double seconds = 0;
  double chunks_per_second = 0;
  double chunks_per_core_second = 0;       ///< chunks per second of the router's CPU
  double read_chunks_per_core_second = 0;  ///< including unwanted chunks
  double unwanted_cost =
      0;  ///< CPU time of an unwanted chunk, as a share of the time of a wanted one; set if some links are unwanted
  double payload_bytes_per_second = 0;
  double copy_ceiling_bytes_per_second = 0;
  double router_cpu_seconds = 0;  ///< CPU time in all rounds
  double subscriber_cpu_seconds = 0;
  std::uint64_t input_bytes = 0;
  std::uint64_t chunks = 0;  ///< each is proven unless `discard`
  std::uint64_t lost = 0;
  std::uint64_t mismatches = 0;
};

/// Throws SetupError: errors of the network, bench.processes.
RouteBenchResult run_route_bench(const RouteBenchSettings& settings);

}  // namespace rodeo::bench
