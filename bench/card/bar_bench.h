// Register accesses of one or several processes on one BAR: their rate and its shares (roc-bar-stress of ReadoutCard).
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
  /// The value to write: each pair of operations writes it, then reads; nothing: only reads.
  std::optional<std::uint64_t> write;
  unsigned processes = 1;  ///< 1 to 128
  std::chrono::milliseconds time{1000};
  std::uint64_t cycles = 0;  ///< reads, or pairs of write and read, of each process; 0: run for `time`
};

struct BarBenchResult {
  std::vector<double> per_process;   ///< operations (a read or a write each) per second
  double operations_per_second = 0;  ///< sum of all processes: median of the rounds
  double unfairness = 0;             ///< largest deviation of a process from the mean, as a share of the mean
  bool mapped = false;
  std::uint64_t operations = 0;  ///< sum of all processes
  double seconds = 0;            ///< time of the slowest process for its operations
  /// Reads that returned another value than was written; another process may have written it.
  std::uint64_t wrong_reads = 0;
  double ceiling_per_second =
      0;  ///< rate of one process: plain loads of memory, or a bare ping-pong over a socket; median of the rounds
  double of_ceiling = 0;  ///< median of the rounds' ratios
};

/// Each process opens the card and begins when all are ready. The measurement has seven rounds. A measurement of the ceiling
/// follows each round, so that other load on the machine affects both. Blocks for twice `time`; `cycles` are one round. The
/// calling process must have one thread. Errors: those of the card (from the first process that had one), card.bench
/// (processes could not be created, or died).
Result<BarBenchResult> run_bar_bench(const card::CardEntry& card, const BarBenchSettings& settings);

}  // namespace rodeo::bench
