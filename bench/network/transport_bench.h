// The network's benchmark: chunks from a publisher to a checking subscriber in another process, compared with the same
// network without Rodeo.
#pragma once

#include <cstdint>
#include <string>

namespace rodeo::bench {

struct TransportBenchSettings {
  std::string provider = "tcp";
  std::uint32_t links = 192;
  std::uint32_t chunk_bytes = 40;
  std::uint32_t run_length = 24;
  std::uint32_t page_bytes = 64U << 10;
  bool discard = false;  ///< the subscriber counts chunks and does not read their bytes
  double seconds = 3;    ///< duration of each part: Rodeo, bare pages, sockets; latencies take a third of it
};

inline constexpr std::uint32_t kLatencyChunkBytes = 64;

/// Medians of rounds. In each round all quantities are measured, one after the other.
struct TransportBenchResult {
  double payload_bytes_per_second = 0;
  double bare_bytes_per_second = 0;
  double socket_bytes_per_second = 0;
  double of_bare = 0;                  ///< median of payload divided by bare, round by round
  double filled_bytes_per_second = 0;  ///< bare pages, each copied from other memory before it is sent
  double of_filled = 0;
  double of_filled_per_core = 0;
  double payload_bytes_per_core_second = 0;  ///< bytes per second of the CPU time of both sides
  double bare_bytes_per_core_second = 0;
  double of_bare_per_core = 0;
  double wire_bytes_per_chunk = 0;
  double payload_efficiency = 0;
  double publisher_cpu_seconds = 0;  ///< CPU time in all rounds
  double subscriber_cpu_seconds = 0;
  double seconds = 0;
  double latency_p50_us = 0;
  double latency_p99_us = 0;
  double bare_latency_p50_us = 0;
  double latency_of_bare = 0;
  std::uint64_t chunks = 0;  ///< chunks received, each proven unless `discard`
  std::uint64_t lost = 0;
  std::uint64_t mismatches = 0;
};

/// Throws SetupError: errors of the network, bench.processes.
TransportBenchResult run_transport_bench(const TransportBenchSettings& settings);

}  // namespace rodeo::bench
