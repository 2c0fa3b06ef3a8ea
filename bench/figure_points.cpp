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

/// One value of a varied quantity, with its name in the figure.
using Coordinate = std::pair<const char*, std::uint32_t>;

struct Point {
  std::vector<Coordinate> at;
  BuildBenchSettings settings = {};
};

/// Runs a point and returns the values that every figure needs.
Json measure(const char* figure, const Point& point, const base::ComponentRegistry& registry) {
  const BuildBenchSettings& settings = point.settings;
  const BuildBenchResult result = run_proven_build_bench(settings, registry);
  const double streams = settings.mode == "full" ? settings.groups : settings.robs;
  const double rate = static_cast<double>(result.fragments) / result.seconds / streams;
  const std::uint32_t threads = std::min(cores(), settings.workers * settings.robs);
  Json out = Json::object();
  std::string where;
  for (const auto& [name, value] : point.at) {
    out[name] = value;
    where += fmt::format("{} {}, ", name, value);
  }
  out["rate_hz"] = rate;
  out["threads"] = settings.workers * settings.robs;
  out["chunks_per_second"] = static_cast<double>(result.chunks) / result.seconds;
  out["chunks_per_core_second"] = static_cast<double>(result.chunks) / result.cpu_seconds;
  out["payload_bytes_per_second"] = static_cast<double>(result.payload_bytes) / result.seconds;
  out["cpu_share"] = result.cpu_seconds / (result.seconds * threads);
  out["verified_fragments"] = result.verified_fragments;
  base::log_info("{}: {}{:.1f} kHz", figure, where, rate * 1e-3);
  return out;
}

Json figure(const char* title, std::string setup) {
  return Json::object({{"title", title}, {"setup", std::move(setup)}, {"points", Json::array()}});
}

/// Measures the points of a figure; if the figure is sparse, only the ends of each sweep.
void add_sweep(Json& out, const char* name, std::vector<Point> points, const FigureSettings& settings,
               const base::ComponentRegistry& registry) {
  if (settings.sparse) points = {points.front(), points.back()};
  for (Point& point : points) {
    point.settings.seconds = settings.seconds;
    out["points"].push_back(measure(name, point, registry));
  }
}

}  // namespace

Json measure_figure4(const FigureSettings& settings, const base::ComponentRegistry& registry) {
  Json out = figure("Figure 4. GBT mode: fragment rate against FELIX cards",
                    "192 links x 40 B of each card, runs of 24 chunks, one builder a card");
  for (const std::uint32_t workers : workers_up_to(3)) {
    std::vector<Point> points;
    for (std::uint32_t n = 1; n <= kMostCards; ++n)
      points.push_back({{{"workers", workers}, {"cards", n}}, {.robs = n, .workers = workers}});
    add_sweep(out, "figure 4", points, settings, registry);
  }
  if (const std::string note = too_few_cores(3); !note.empty()) out["note"] = note;
  return out;
}

Json measure_figure5(const FigureSettings& settings, const base::ComponentRegistry& registry) {
  const std::uint32_t workers = std::min(cores(), 2U);
  Json out = figure("Figure 5. FULL mode: rate of each stream against their number",
                    fmt::format("24 links x 5000 B, in turn within a stream, {}, a consumer that reads every byte",
                                base::counted(workers, "worker")));
  std::vector<Point> points;
  for (const std::uint32_t streams : {1U, 2U, 3U, 4U, 6U, 8U, 12U, 24U}) {
    points.push_back({{{"streams", streams}},
                      {.mode = "full",
                       .links = 24,
                       .groups = streams,
                       .chunk_bytes = 5000,
                       .workers = std::min(workers, streams)}});  // one worker reads a stream
  }
  add_sweep(out, "figure 5", points, settings, registry);
  return out;
}

Json measure_figure6a(const FigureSettings& settings, const base::ComponentRegistry& registry) {
  const std::uint32_t workers = std::min(cores(), kWorkersOfFigure6);
  Json out = figure("Figure 6a. GBT mode: fragment rate against chunk size",
                    fmt::format("48 links, one fragment, {} (the paper had 6)", base::counted(workers, "worker")));
  std::vector<Point> points;
  for (const std::uint32_t bytes : {40U, 80U, 120U, 160U, 200U, 240U})
    points.push_back({{{"chunk_bytes", bytes}}, {.links = 48, .chunk_bytes = bytes, .workers = workers}});
  add_sweep(out, "figure 6a", points, settings, registry);
  return out;
}

Json measure_figure6b(const FigureSettings& settings, const base::ComponentRegistry& registry) {
  const std::uint32_t workers = std::min(cores(), kWorkersOfFigure6);
  Json out = figure("Figure 6b. GBT mode: fragment rate against links",
                    fmt::format("one fragment, {} (the paper had 6)", base::counted(workers, "worker")));
  for (const std::uint32_t bytes : {40U, 80U}) {
    std::vector<Point> points;
    for (std::uint32_t links = 24; links <= 192; links += 24)
      points.push_back(
          {{{"chunk_bytes", bytes}, {"links", links}}, {.links = links, .chunk_bytes = bytes, .workers = workers}});
    add_sweep(out, "figure 6b", points, settings, registry);
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

Json measure_statistics(const FigureSettings& settings) {
  constexpr std::uint32_t kMostThreads = 4;
  Json out = figure(
      "FelixCore's statistics: what counting costs the data threads",
      "192 links x 40 B of each thread, from FELIX blocks to pages; medians of pairs of runs, with a design and without");
  StatisticsBenchSettings point;
  point.rounds = settings.sparse ? 2 : 30;
  point.seconds = settings.seconds * 2.0 * kStatisticsDesigns.size();
  for (const bool each_chunk : {true, false}) {
    for (const std::uint32_t threads : doubled_up_to(settings.sparse ? 1 : kMostThreads)) {
      point.each_chunk = each_chunk;
      point.threads = threads;
      const StatisticsBenchResult result = run_statistics_bench(point);
      if (result.mismatches != 0) throw SetupError(not_proven(result.mismatches, 0, 0));
      const char* const count = each_chunk ? "chunk" : "run";
      for (std::size_t i = 0; i < kStatisticsDesigns.size(); ++i)
        out["points"].push_back(Json::object({{"count", count},
                                              {"threads", threads},
                                              {"design", kStatisticsDesigns[i]},
                                              {"chunks_per_second", result.designs[i].chunks_per_second},
                                              {"relative", result.designs[i].relative},
                                              {"thread_cpu_share", result.cpu_share}}));
      base::log_info("statistics: by the {}, {}: pull {:.3f}, queue {:.3f} of the rate without", count,
                     base::counted(threads, "thread"), result.designs[0].relative, result.designs[3].relative);
    }
  }
  if (const std::string note = threads_that_share_cores(kMostThreads); !note.empty()) out["note"] = note;
  return out;
}

}  // namespace rodeo::bench
