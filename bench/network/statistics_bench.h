// What statistics cost the router's threads: the designs of felixcore-statistics-slides beside each other, on FELIX blocks that are decoded and put into
// pages for a subscriber, without a network.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace rodeo::bench {

inline constexpr std::array<const char*, 4> kStatisticsDesigns{"pull", "push", "central", "queue"};

struct StatisticsBenchSettings {
  std::uint32_t threads = 2;
  bool each_chunk = false;    ///< counted by itself, as FelixCore did; else run by run, as the product does
  std::uint32_t links = 192;  ///< of each thread
  std::uint32_t chunk_bytes = 40;
  std::uint32_t rounds = 30;  ///< each: every design, and none right beside it
  double seconds = 30;        ///< of all rounds
};

/// Rates are chunks per second of CPU time, summed over the data threads: what they would do with a core each.
struct DesignCost {
  double chunks_per_second = 0;     ///< median of the rounds
  double relative = 0;              ///< to none, the run beside it: median
  double cost_upper_limit = 0;      ///< 1 - relative: 95 % upper limit of the median
  double statistics_cpu_share = 0;  ///< of a core, that the statistics thread took: median
};

struct StatisticsBenchResult {
  double none_chunks_per_second = 0;
  std::array<DesignCost, kStatisticsDesigns.size()> designs{};
  double central_to_pull = 0;    ///< of the same round: median
  double cpu_share = 0;          ///< CPU that the data threads got of what they wanted, without statistics: median
  std::uint64_t chunks = 0;      ///< counted and found right, of all designs
  std::uint64_t mismatches = 0;  ///< links of a thread, and sums, whose statistics are not what the thread handled
};

/// Throws SetupError: memory.
StatisticsBenchResult run_statistics_bench(const StatisticsBenchSettings& settings);

/// The value that the median of what was drawn is below with a confidence of 95 %, whatever its distribution; of fewer than five, the most.
double upper_limit_of_median(std::vector<double> values);

}  // namespace rodeo::bench
