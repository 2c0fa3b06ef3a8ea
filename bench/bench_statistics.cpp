// `rodeo bench statistics`: the cost of counting in the router's threads, with four designs and with none
// (felixcore-statistics-slides).
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "base/sentence.h"
#include "bench/bench.h"
#include "bench/network/statistics_bench.h"
#include "bench/proof.h"
#include "bench/readout/build_bench.h"

namespace rodeo::bench {

using namespace cli;

Json json_of(std::uint32_t threads, const StatisticsBenchResult& result) {
  Json out = Json::object({{"threads", threads}, {"none", result.none_chunks_per_second}});
  Json relative = Json::object(), limits = Json::object(), cpu = Json::object();
  for (std::size_t i = 0; i < kStatisticsDesigns.size(); ++i) {
    const char* const name = kStatisticsDesigns[i];
    out[name] = result.designs[i].chunks_per_second;
    relative[name] = result.designs[i].relative;
    limits[name] = result.designs[i].cost_upper_limit;
    cpu[name] = result.designs[i].statistics_cpu_share;
  }
  out["relative"] = std::move(relative);
  out["cost_upper_limit"] = std::move(limits);
  out["central_to_pull"] = result.central_to_pull;
  out["statistics_cpu_share"] = std::move(cpu);
  out["cpu_share"] = result.cpu_share;
  out["verified_chunks"] = result.chunks;
  out["mismatches"] = result.mismatches;
  return out;
}

std::vector<std::uint32_t> doubled_up_to(std::uint32_t most) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t n = 1; n < most; n *= 2) out.push_back(n);
  out.push_back(most);
  return out;
}

std::string threads_that_share_cores(std::uint32_t most) {
  const std::uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
  return cores >= most ? "" : fmt::format("{} threads share {}: drawn, not judged", most, base::counted(cores, "core"));
}

namespace {

void print(std::uint32_t threads, const StatisticsBenchResult& result) {
  fmt::print("{}\n  {:<8} {:>10}   {:>8}   {:>14}   {:>16}\n", base::counted(threads, "thread"), "design", "chunks",
             "to none", "costs at most", "statistics' CPU");
  fmt::print("  {:<8} {:>6.1f} M/s\n", "none", result.none_chunks_per_second * 1e-6);
  for (std::size_t i = 0; i < kStatisticsDesigns.size(); ++i) {
    const DesignCost& cost = result.designs[i];
    fmt::print("  {:<8} {:>6.1f} M/s   {:>8.3f}   {:>12.1f} %   {:>11.1f} % of one\n", kStatisticsDesigns[i],
               cost.chunks_per_second * 1e-6, cost.relative, cost.cost_upper_limit * 100, cost.statistics_cpu_share * 100);
  }
  fmt::print("  central/pull {:.3f}; the threads got {:.0f} % of the CPU that they wanted\n  verified {}; {}\n",
             result.central_to_pull, result.cpu_share * 100, base::counted(result.chunks, "chunk"),
             mismatches(result.mismatches));
}

}  // namespace

void add_bench_statistics(Command& bench) {
  struct Options {
    StatisticsBenchSettings settings;
    std::string count = "run";
    std::string json;
  };
  auto options = std::make_shared<Options>();
  StatisticsBenchSettings& settings = options->settings;
  Command& statistics = bench.verb("statistics", "The cost of counting in the router's threads: four designs, and none");
  statistics.example("rodeo bench statistics", "one thread and two; a minute")
      .example("rodeo bench statistics --count chunk", "each chunk counted by itself, as FelixCore did");
  statistics.option("--threads", settings.threads, "Largest number of data threads: 1, 2, 4, ...");
  statistics.choice("--count", options->count, {"run", "chunk"}, "Unit of counting");
  statistics.option("--links", settings.links, "Links of each thread");
  statistics.option("--chunk-bytes", settings.chunk_bytes, "Size of a chunk [B]");
  statistics.option("--rounds", settings.rounds, "Pairs of runs of each design and none");
  statistics.option("--seconds", settings.seconds, "Length of the measurement with each number of threads [s]");
  statistics.json_file(options->json);
  statistics.paragraph(
      "Packets, bytes and errors of each link, each thread and in sum, read ten times a second. pull: each thread has a set "
      "of "
      "its own, which is read (the product); push: each adds its own to a common one after every page of the input; "
      "central: "
      "all count in a common one; queue: each count goes through a concurrent queue. Rates are per second of the data "
      "threads' "
      "CPU time, summed over them. `costs at most` is the upper 95 % limit of the median over the pairs.");
  statistics.run([options]() -> Result<ExitCode> {
    StatisticsBenchSettings given = options->settings;
    RODEO_TRY(check_numbers({{"--threads", static_cast<double>(given.threads), 1, 64},
                             {"--links", static_cast<double>(given.links), 1, 2048},
                             {"--chunk-bytes", static_cast<double>(given.chunk_bytes), 8, 2048},
                             {"--rounds", static_cast<double>(given.rounds), 1, 10'000},
                             {"--seconds", given.seconds, 0.001, kLongestBench}}));
    given.each_chunk = options->count == "chunk";
    const bool table = options->json != "-";
    Json rows = Json::array();
    std::uint64_t mismatches = 0;
    if (table)
      fmt::print("{} x {} B of each thread, from FELIX blocks to pages, counted by the {}\n",
                 base::counted(given.links, "link"), given.chunk_bytes, options->count);
    for (const std::uint32_t threads : doubled_up_to(given.threads)) {
      StatisticsBenchSettings row = given;
      row.threads = threads;
      const StatisticsBenchResult result = run_statistics_bench(row);
      mismatches += result.mismatches;
      rows.push_back(json_of(threads, result));
      if (table) print(threads, result);
    }
    const std::string note = threads_that_share_cores(given.threads);
    if (table && !note.empty()) fmt::print("{}\n", note);
    if (!options->json.empty()) {
      Json out = Json::object({{"count", options->count},
                               {"links", given.links},
                               {"chunk_bytes", given.chunk_bytes},
                               {"rounds", given.rounds},
                               {"seconds", given.seconds}});
      const Json& last = rows.elements().back();
      for (const char* name : {"none", "pull", "push", "central", "queue"}) out[name] = *last.find(name);
      out["rows"] = std::move(rows);
      if (!note.empty()) out["note"] = note;
      RODEO_TRY(write_json(options->json, out));
    }
    if (mismatches == 0) return ExitCode::done;
    return std::unexpected(not_proven(mismatches, 0, 0));
  });
}

}  // namespace rodeo::bench
