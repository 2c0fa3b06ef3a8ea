// The cost of statistics in the router's threads: compares the designs of felixcore-statistics-slides on FELIX blocks that
// are decoded and put into pages for a subscriber, without a network.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace rodeo::bench {

inline constexpr std::array<const char*, 4> kStatisticsDesigns{"pull", "push", "central", "queue"};

struct StatisticsBenchSettings {
  std::uint32_t threads = 2;
  bool each_chunk = false;    ///< count each chunk by itself, like FelixCore; else run by run, like the product
  std::uint32_t links = 192;  ///< links of each thread
  std::uint32_t chunk_bytes = 40;
  std::uint32_t rounds = 30;  ///< in each round every design is measured, followed by a run without statistics
  double seconds = 30;        ///< duration of all rounds
};

/// Rates are chunks per second of CPU time, summed over the data threads: this would be the rate if each thread had a core.
struct DesignCost {
  double chunks_per_second = 0;     ///< median of the rounds
  double relative = 0;              ///< median of the ratio to the run without statistics in the same round
  double cost_upper_limit = 0;      ///< 95 % upper limit of the median of 1 - relative
  double statistics_cpu_share = 0;  ///< median of the share of a core that the statistics thread used
};

struct StatisticsBenchResult {
  double none_chunks_per_second = 0;
  std::array<DesignCost, kStatisticsDesigns.size()> designs{};
  double central_to_pull = 0;  ///< median of the ratio central to pull in the same round
  double cpu_share = 0;        ///< median of the share of the wanted CPU time that the data threads got, without statistics
  std::uint64_t chunks = 0;    ///< chunks with correct counts, over all designs
  /// Number of links of a thread, and of sums, whose statistics differ from the thread's true counts.
  std::uint64_t mismatches = 0;
};

/// Throws SetupError if there is too little memory.
StatisticsBenchResult run_statistics_bench(const StatisticsBenchSettings& settings);

/// The 95 % upper confidence limit of the median, for any distribution; for fewer than five values, the largest one.
double upper_limit_of_median(std::vector<double> values);

}  // namespace rodeo::bench
