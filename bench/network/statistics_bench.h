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
  std::uint32_t rounds = 30;  ///< each round: every design, with a run without statistics beside it
  double seconds = 30;        ///< duration of all rounds
};

/// Rates are chunks per second of CPU time, summed over the data threads: the rate if each thread had a core.
struct DesignCost {
  double chunks_per_second = 0;     ///< median of the rounds
  double relative = 0;              ///< relative to the run without statistics beside it: median
  double cost_upper_limit = 0;      ///< 1 - relative: 95 % upper limit of the median
  double statistics_cpu_share = 0;  ///< share of a core of the statistics thread: median
};

struct StatisticsBenchResult {
  double none_chunks_per_second = 0;
  std::array<DesignCost, kStatisticsDesigns.size()> designs{};
  double central_to_pull = 0;    ///< ratio in the same round: median
  double cpu_share = 0;          ///< share of the wanted CPU that the data threads got, without statistics: median
  std::uint64_t chunks = 0;      ///< chunks with correct counts, all designs
  std::uint64_t mismatches = 0;  ///< links of a thread, and sums, with statistics other than the thread's true counts
};

/// Throws SetupError: memory.
StatisticsBenchResult run_statistics_bench(const StatisticsBenchSettings& settings);

/// The 95 % upper confidence limit of the median, for any distribution; of fewer than five values, the largest.
double upper_limit_of_median(std::vector<double> values);

}  // namespace rodeo::bench
