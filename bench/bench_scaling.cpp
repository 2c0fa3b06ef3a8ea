// `rodeo bench scaling`: compares two workers with one, in turn, with medians (the paper's Table II).
#include <fmt/core.h>

#include <thread>

#include "bench/bench.h"
#include "bench/readout/scaling.h"
#include "readout/defaults.h"
#include "settings/json.h"

namespace rodeo::bench {

using namespace cli;

Json json_of(const ScalingRow& row) {
  Json out = Json::object({{"workers", row.workers},
                           {"chunks_per_second", row.chunks_per_second},
                           {"chunks_per_core_second", row.chunks_per_core_second},
                           {"fragments_per_second", row.fragments_per_second},
                           {"cpu_share", row.cpu_share},
                           {"speedup", row.speedup}});
  if (row.workers > 1) {
    const double cost = assembly_cost(row.workers, row.speedup);
    out["assembly_cost"] = cost;
    out["parallel_fraction"] = parallel_fraction(cost);
  }
  return out;
}

std::vector<std::uint32_t> workers_up_to(std::uint32_t most) {
  const std::uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::uint32_t> workers;
  for (std::uint32_t n = 1; n <= std::min(most, cores); ++n) workers.push_back(n);
  return workers;
}

std::string too_few_cores(std::uint32_t most) {
  const std::uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
  return cores >= most ? "" : fmt::format("S({}) needs {} cores; this machine has {}", most, most, cores);
}

void add_bench_scaling(Command& bench) {
  struct Options {
    BuildBenchSettings settings;
    std::uint32_t workers = 2;
    std::uint32_t repeat = 5;
    std::string json;
  };
  auto options = std::make_shared<Options>();
  options->settings.seconds = 1;
  Command& scaling = bench.verb("scaling", "The gain of a second worker: runs in turn, medians, and the paper's Table II");
  scaling.example("rodeo bench scaling", "192 links, one and two workers, five times each");
  scaling.option("--workers", options->workers, "Largest number of workers");
  scaling.option("--repeat", options->repeat, "Runs with each number of workers");
  scaling.option("--links", options->settings.links, "Links");
  scaling.option("--chunk-bytes", options->settings.chunk_bytes, "Size of a chunk [B]");
  scaling.option("--seconds", options->settings.seconds, "Length of each run [s]");
  scaling.json_file(options->json);
  scaling.paragraph(
      "S(n) is the median of the ratios of neighbouring runs. C_FA = (n/S - 1)/(0.01 (n - 1)), the relative cost of final "
      "assembly, is "
      "eq. (3) of the software ROD paper solved for it; its eq. (4) is printed with S/n instead of n/S. P = 1 - 0.01 C_FA.");
  scaling.run([options]() -> Result<ExitCode> {
    RODEO_TRY(check_numbers({{"--workers", static_cast<double>(options->workers), 1, kMostBenchLinks},
                             {"--repeat", static_cast<double>(options->repeat), 1, 1e6},
                             {"--links", static_cast<double>(options->settings.links), 1, kMostBenchLinks},
                             {"--chunk-bytes", static_cast<double>(options->settings.chunk_bytes), 8, kMostBenchChunk},
                             {"--seconds", options->settings.seconds, 0.001, kLongestBench}}));
    if (options->repeat == 0 || options->workers == 0)
      return std::unexpected(Error{"cli.usage", "--repeat and --workers are at least 1"});
    base::ComponentRegistry registry;
    RODEO_TRY(registry.add_library("built in", readout::register_defaults));
    const auto rows = measure_scaling(options->settings, workers_up_to(options->workers), options->repeat, registry);
    const std::string missing = too_few_cores(options->workers);
    if (options->json != "-") {
      fmt::print("workers   chunks [M/s]   per core-second [M/s]   fragments [kHz]   CPU got    S(n)    C_FA       P\n");
      for (const ScalingRow& row : rows) {
        const double cost = assembly_cost(row.workers, row.speedup);
        fmt::print("{:7}   {:12.1f}   {:21.1f}   {:15.1f}   {:5.0f} %   {:5.2f}   {}\n", row.workers,
                   row.chunks_per_second * 1e-6, row.chunks_per_core_second * 1e-6, row.fragments_per_second * 1e-3,
                   row.cpu_share * 100, row.speedup,
                   row.workers == 1 ? "" : fmt::format("{:5.1f}   {:5.3f}", cost, parallel_fraction(cost)));
      }
      if (!missing.empty()) fmt::print("{}\n", missing);
    }
    if (!options->json.empty()) {
      Json out = Json::object({{"links", options->settings.links},
                               {"chunk_bytes", options->settings.chunk_bytes},
                               {"repeats", options->repeat}});
      for (const ScalingRow& row : rows) out["rows"].push_back(json_of(row));
      if (!missing.empty()) out["note"] = missing;
      RODEO_TRY(write_json(options->json, out));
    }
    return ExitCode::done;
  });
}

}  // namespace rodeo::bench
