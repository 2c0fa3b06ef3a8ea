#include "bench/figure_points.h"

#include <algorithm>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "base/log.h"
#include "base/sentence.h"
#include "bench/bench.h"
#include "bench/readout/build_bench.h"
#include "bench/readout/scaling.h"

namespace rodeo::bench {

using namespace cli;

namespace {

using settings::Json;

constexpr std::uint32_t kMostCards = 6;
constexpr std::uint32_t kWorkersOfFigure6 = 6;

std::uint32_t cores() { return std::max(1U, std::thread::hardware_concurrency()); }

std::vector<std::uint32_t> sweep(std::vector<std::uint32_t> points, const FigureSettings& settings) {
  if (settings.sparse) return {points.front(), points.back()};
  return points;
}

/// Runs one point and adds what every figure wants to know of it.
Json measure(const char* figure, Json point, const BuildBenchSettings& settings, const base::ComponentRegistry& registry) {
  const BuildBenchResult result = run_proven_build_bench(settings, registry);
  const double streams = settings.mode == "full" ? settings.groups : settings.robs;
  const double rate = static_cast<double>(result.fragments) / result.seconds / streams;
  const std::uint32_t threads = std::min(cores(), settings.workers * settings.robs);
  point["rate_hz"] = rate;
  point["threads"] = settings.workers * settings.robs;
  point["chunks_per_second"] = static_cast<double>(result.chunks) / result.seconds;
  point["chunks_per_core_second"] = static_cast<double>(result.chunks) / result.cpu_seconds;
  point["payload_bytes_per_second"] = static_cast<double>(result.payload_bytes) / result.seconds;
  point["cpu_share"] = result.cpu_seconds / (result.seconds * threads);
  point["verified_fragments"] = result.verified_fragments;
  std::string where;
  for (const auto& [key, value] : point.members()) {
    if (key == "rate_hz") break;
    where += fmt::format("{} {}, ", key, value.unsigned_integer());
  }
  base::log_info("{}: {}{:.1f} kHz", figure, where, rate * 1e-3);
  return point;
}

Json figure(const char* title, std::string setup) {
  return Json::object({{"title", title}, {"setup", std::move(setup)}, {"points", Json::array()}});
}

}  // namespace

Json measure_figure4(const FigureSettings& settings, const base::ComponentRegistry& registry) {
  Json out = figure("Figure 4. GBT mode: fragment rate against FELIX cards",
                    "192 links x 40 B of each card, runs of 24 chunks, one builder a card");
  std::vector<std::uint32_t> cards;
  for (std::uint32_t n = 1; n <= kMostCards; ++n) cards.push_back(n);
  for (const std::uint32_t workers : workers_up_to(3)) {
    for (const std::uint32_t n : sweep(cards, settings)) {
      BuildBenchSettings point;
      point.robs = n;
      point.workers = workers;
      point.seconds = settings.seconds;
      out["points"].push_back(measure("figure 4", Json::object({{"workers", workers}, {"cards", n}}), point, registry));
    }
  }
  if (const std::string note = too_few_cores(3); !note.empty()) out["note"] = note;
  return out;
}

Json measure_figure5(const FigureSettings& settings, const base::ComponentRegistry& registry) {
  const std::uint32_t workers = std::min(cores(), 2U);
  Json out = figure("Figure 5. FULL mode: rate of each stream against their number",
                    fmt::format("24 links x 5000 B, in turn within a stream, {}, a consumer that reads every byte",
                                base::counted(workers, "worker")));
  for (const std::uint32_t streams : sweep({1, 2, 3, 4, 6, 8, 12, 24}, settings)) {
    BuildBenchSettings point;
    point.mode = "full";
    point.links = 24;
    point.groups = streams;
    point.chunk_bytes = 5000;
    point.workers = std::min(workers, streams);  // a stream is one worker's
    point.seconds = settings.seconds;
    out["points"].push_back(measure("figure 5", Json::object({{"streams", streams}}), point, registry));
  }
  return out;
}

Json measure_figure6a(const FigureSettings& settings, const base::ComponentRegistry& registry) {
  const std::uint32_t workers = std::min(cores(), kWorkersOfFigure6);
  Json out = figure("Figure 6a. GBT mode: fragment rate against chunk size",
                    fmt::format("48 links, one fragment, {} (the paper had 6)", base::counted(workers, "worker")));
  for (const std::uint32_t bytes : sweep({40, 80, 120, 160, 200, 240}, settings)) {
    BuildBenchSettings point;
    point.links = 48;
    point.chunk_bytes = bytes;
    point.workers = workers;
    point.seconds = settings.seconds;
    out["points"].push_back(measure("figure 6a", Json::object({{"chunk_bytes", bytes}}), point, registry));
  }
  return out;
}

Json measure_figure6b(const FigureSettings& settings, const base::ComponentRegistry& registry) {
  const std::uint32_t workers = std::min(cores(), kWorkersOfFigure6);
  Json out = figure("Figure 6b. GBT mode: fragment rate against links",
                    fmt::format("one fragment, {} (the paper had 6)", base::counted(workers, "worker")));
  for (const std::uint32_t bytes : {40U, 80U}) {
    for (const std::uint32_t links : sweep({24, 48, 72, 96, 120, 144, 168, 192}, settings)) {
      BuildBenchSettings point;
      point.links = links;
      point.chunk_bytes = bytes;
      point.workers = workers;
      point.seconds = settings.seconds;
      out["points"].push_back(
          measure("figure 6b", Json::object({{"chunk_bytes", bytes}, {"links", links}}), point, registry));
    }
  }
  return out;
}

Json measure_table2(const FigureSettings& settings, const base::ComponentRegistry& registry) {
  Json out = figure("Table II. Parallel fraction of the GBT algorithm",
                    fmt::format("192 links x 40 B, {} runs of each in turn, medians", settings.repeats));
  BuildBenchSettings point;
  point.seconds = settings.seconds;
  for (const auto& row : measure_scaling(point, workers_up_to(3), settings.repeats, registry)) {
    base::log_info("table II: {}, S = {:.2f}", base::counted(row.workers, "worker"), row.speedup);
    out["points"].push_back(json_of(row));
  }
  if (const std::string note = too_few_cores(3); !note.empty()) out["note"] = note;
  return out;
}

}  // namespace rodeo::bench
