// The benchmark of event building: the product's readouts, supervisor and filter nodes, with whole events of provable bytes,
// compared with the transport alone.
#pragma once

#include <cstdint>
#include <string>

namespace rodeo::bench {

struct EventBenchSettings {
  std::string provider = "tcp";
  std::uint32_t readouts = 8;
  std::uint32_t nodes = 4;
  std::uint32_t fragment_bytes = 104'000;  ///< size from each readout: 5 MB from 48 readouts, as in the paper's laboratory
  std::uint32_t slots = 32;                ///< events that a node has at a time
  std::uint32_t workers = 1;               ///< threads of a node that check events
  std::uint32_t kept = 256;                ///< fragments of a readout
  std::uint32_t page_bytes = 64U << 10;
  std::uint32_t pages = 64;            ///< pages of each connection
  std::uint32_t credit_fragments = 8;  ///< fragments that a node may have requested, with shaping
  std::uint64_t credit_bytes = 0;      ///< bytes that a node may have requested, with shaping; both 0: no shaping
  double seconds = 3;                  ///< duration of each measurement, in rounds
};

/// Whole events, with or without shaping. Medians of rounds.
struct EventRates {
  double events_per_second = 0;
  double bytes_per_second = 0;  ///< bytes of ROD data
  double bytes_per_core_second = 0;
  double latency_p50_us = 0;   ///< time from the first request for an event to its last fragment: median of the nodes
  double latency_p99_us = 0;   ///< 99 % latency of the slowest node
  double building_p50_us = 0;  ///< time from the assignment, including the wait for credit
  double building_p99_us = 0;
  double waits_for_credit = 0;  ///< number of waits for credit of an event
};

struct EventBenchResult {
  double seconds = 0;
  EventRates free;    ///< without a limit of requests
  EventRates shaped;  ///< rates with credits
  bool has_shaped = false;
  /// Transport alone: requests and replies of the same size, over the same number of connections.
  double transport_bytes_per_second = 0;
  double transport_bytes_per_core_second = 0;
  double bare_bytes_per_second = 0;  ///< pages without requests, over the same number of connections
  double bare_bytes_per_core_second = 0;
  double of_transport = 0;
  double of_transport_per_core = 0;
  double of_bare = 0;
  double of_bare_per_core = 0;
  double shaped_of_free = 0;

  // The proof
  std::uint64_t events = 0;  ///< events decided in all rounds
  std::uint64_t verified_fragments = 0;
  std::uint64_t mismatches = 0;  ///< fragments with wrong bytes, events that were not whole, counters that do not add up
  std::uint64_t lost = 0;        ///< lost fragments
};

/// Forks; call it before there are threads. Readouts are threads of one process, supervisor and nodes of another. Throws
/// SetupError.
EventBenchResult run_event_bench(const EventBenchSettings& settings);

}  // namespace rodeo::bench
