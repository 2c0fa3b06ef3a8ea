// The scaling of a build with its workers: interleaved repeats, medians, and the paper's quantities (section VIII, eq. 1 to
// 4).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bench/readout/build_bench.h"

namespace rodeo::bench {

/// Medians of the repeats with one number of workers.
struct ScalingRow {
  std::uint32_t workers = 1;
  double chunks_per_second = 0;
  double chunks_per_core_second = 0;
  double fragments_per_second = 0;
  double cpu_share = 0;  ///< share of the wanted CPU time that the workers got; well below 1: the machine was busy
  double speedup = 1;    ///< S(n): median of the ratios to the run with one worker in the same repeat
};

/// Repeats runs with 1, 2, ... workers in turn, so that changes of the machine's load affect all. The first of `workers` is
/// 1. Throws SetupError (readout.bench_mismatch) for a run that is not proven.
std::vector<ScalingRow> measure_scaling(BuildBenchSettings settings, std::span<const std::uint32_t> workers,
                                        std::uint32_t repeats, const base::ComponentRegistry& registry);

/// Relative cost of final assembly, (n/S - 1) / (0.01 (n - 1)): eq. (3) solved for C_FA. Eq. (4) of the paper is printed
/// with S/n.
double assembly_cost(std::uint32_t workers, double speedup);

/// Parallel fraction P = 1 - 0.01 C_FA, eq. (2).
double parallel_fraction(double assembly_cost);

double median(std::vector<double> values);

}  // namespace rodeo::bench
