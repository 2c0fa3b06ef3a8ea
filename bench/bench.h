// The verbs of `rodeo bench`, one file for each verb, and their common functions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "bench/network/statistics_bench.h"
#include "bench/readout/scaling.h"
#include "cli/command.h"
#include "settings/json.h"

namespace rodeo::bench {

/// Adds the noun `bench` with every verb.
void add_bench(cli::Command& root);

void add_bench_events(cli::Command& bench);
void add_bench_farm(cli::Command& bench);
void add_bench_data(cli::Command& bench);
void add_bench_latency(cli::Command& bench);
void add_bench_route(cli::Command& bench);
void add_bench_scaling(cli::Command& bench);
void add_bench_serve(cli::Command& bench);
void add_bench_statistics(cli::Command& bench);
void add_bench_transport(cli::Command& bench);
void add_bench_figures(cli::Command& bench);

/// The value of a numeric option, and its limits.
struct BenchNumber {
  const char* option;
  double value;
  double least;
  double most;
};

/// Error cli.bad_value for the first value that is outside its limits, or not a number.
Result<void> check_numbers(std::initializer_list<BenchNumber> numbers);

inline constexpr double kLongestBench = 86'400;  // seconds
inline constexpr double kMostBenchLinks = 65'534;
inline constexpr double kMostBenchChunk = 1 << 20;
inline constexpr double kMostBenchWorkers = 256;

/// The row with S(n), C_FA and P.
settings::Json json_of(const ScalingRow& row);

/// The result with this number of data threads.
settings::Json json_of(std::uint32_t threads, const StatisticsBenchResult& result);

/// The numbers 1, 2, ... up to `most`, or up to the number of cores.
std::vector<std::uint32_t> workers_up_to(std::uint32_t most);

/// "S(3) needs three cores ..." if the machine has fewer cores; else empty.
std::string too_few_cores(std::uint32_t most);

/// The numbers 1, 2, 4, ..., and `most`.
std::vector<std::uint32_t> doubled_up_to(std::uint32_t most);

/// "4 threads share 2 cores ..." if the machine has fewer cores than threads; else empty.
std::string threads_that_share_cores(std::uint32_t most);

}  // namespace rodeo::bench
