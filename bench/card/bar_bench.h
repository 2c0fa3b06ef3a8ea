// Register accesses of one or several processes on one BAR: how many per second, and how fairly shared (roc-bar-stress of ReadoutCard).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "card/enumeration.h"
#include "card/register_target.h"

namespace rodeo::bench {

struct BarBenchSettings {
  card::RegisterTarget target;
  std::optional<std::uint64_t> write;  ///< each operation pair writes this, then reads; nothing: only reads
  unsigned processes = 1;              ///< 1 to 128
  std::chrono::milliseconds time{1000};
  std::uint64_t cycles = 0;  ///< so many reads, or pairs of write and read, by each process; 0: for `time`
};

struct BarBenchResult {
  std::vector<double> per_process;   ///< operations (a read or a write each) per second
  double operations_per_second = 0;  ///< of all together: median of the rounds
  double unfairness = 0;             ///< largest deviation of a process from their mean, as a share of it
  bool mapped = false;
  std::uint64_t operations = 0;   ///< of all together
  double seconds = 0;             ///< that the slowest process took for its own
  std::uint64_t wrong_reads = 0;  ///< values that are not what was written; another process may have written another
  double ceiling_per_second =
      0;                  ///< of one process: plain loads of memory, or a bare ping-pong over a socket; median of the rounds
  double of_ceiling = 0;  ///< median of the rounds' ratios
};

/// Every process opens the card by itself and begins when all are ready. `time` is measured in seven rounds, each followed by the ceiling's, so that
/// what else the machine does meets both. Blocks for twice that; `cycles` are one round. The calling process must have one thread.
/// Errors: those of the card (of the first process that had one), card.bench (processes could not be made, or died).
Result<BarBenchResult> run_bar_bench(const card::CardEntry& card, const BarBenchSettings& settings);

}  // namespace rodeo::bench
