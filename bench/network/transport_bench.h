// The network's benchmark: chunks from a publisher to a subscriber in another process, which proves them, beside the same network without any of it.
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
  bool discard = false;  ///< the subscriber counts chunks, and looks at no byte of them
  double seconds = 3;    ///< of each of the three: ours, bare, sockets; latencies take a third of it
};

inline constexpr std::uint32_t kLatencyChunkBytes = 64;

/// Medians of rounds in which all are measured, one after the other.
struct TransportBenchResult {
  double payload_bytes_per_second = 0;
  double bare_bytes_per_second = 0;
  double socket_bytes_per_second = 0;
  double of_bare = 0;                  ///< payload to bare, round by round
  double filled_bytes_per_second = 0;  ///< bare pages, each copied from other memory before it goes
  double of_filled = 0;
  double of_filled_per_core = 0;
  double payload_bytes_per_core_second = 0;  ///< of the CPU of both sides
  double bare_bytes_per_core_second = 0;
  double of_bare_per_core = 0;
  double wire_bytes_per_chunk = 0;
  double payload_efficiency = 0;
  double publisher_cpu_seconds = 0;  ///< of all rounds
  double subscriber_cpu_seconds = 0;
  double seconds = 0;
  double latency_p50_us = 0;
  double latency_p99_us = 0;
  double bare_latency_p50_us = 0;
  double latency_of_bare = 0;
  std::uint64_t chunks = 0;  ///< that came, each of them proven unless `discard`
  std::uint64_t lost = 0;
  std::uint64_t mismatches = 0;
};

/// Throws SetupError: what the network says, bench.processes.
TransportBenchResult run_transport_bench(const TransportBenchSettings& settings);

}  // namespace rodeo::bench
