// `rodeo bench`: the speed of the product's own components on this machine, against a ceiling measured in the same run.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "base/sentence.h"
#include "bench/bench.h"
#include "bench/proof.h"
#include "bench/readout/build_bench.h"
#include "readout/defaults.h"

namespace rodeo::bench {

using namespace cli;

namespace {

/// Measured right after a run that keeps no fragments, for comparison.
struct Retained {
  double seconds = 0;  ///< 0: not measured
  double rate_hz = 100'000;
  double chunks_per_core_second_without = 0;
};

double per_core(const BuildBenchResult& result) { return static_cast<double>(result.chunks) / result.cpu_seconds; }

Json json_of(const BuildBenchSettings& settings, const Retained& retained, const BuildBenchResult& result) {
  const double chunks = static_cast<double>(result.chunks);
  Json json =
      Json::object({{"mode", settings.mode},
                    {"source", settings.source},
                    {"run_length", settings.run_length},
                    {"links", settings.links},
                    {"groups", settings.groups},
                    {"chunk_bytes", settings.chunk_bytes},
                    {"robs", settings.robs},
                    {"workers", settings.workers},
                    {"checker", settings.checker.empty() ? "none" : settings.checker},
                    {"extractor", settings.extractor},
                    {"seconds", result.seconds},
                    {"chunks_per_second", chunks / result.seconds},
                    {"chunks_per_core_second", chunks / result.cpu_seconds},
                    {"cpu_seconds", result.cpu_seconds},
                    {"input_bytes", result.input_bytes},
                    {"fragments_per_second", static_cast<double>(result.fragments) / result.seconds},
                    {"fragments_per_core_second", static_cast<double>(result.fragments) / result.cpu_seconds},
                    {"payload_bytes_per_second", static_cast<double>(result.payload_bytes) / result.seconds},
                    {"payload_bytes_per_core_second", static_cast<double>(result.payload_bytes) / result.cpu_seconds},
                    {"copy_ceiling_bytes_per_second", result.copy_ceiling_bytes_per_second},
                    {"read_ceiling_bytes_per_second", result.read_ceiling_bytes_per_second},
                    {"window_events", result.window_events},
                    {"incomplete", result.incomplete},
                    {"lost", result.lost},
                    {"unaccounted", result.unaccounted},
                    {"verified_fragments", result.verified_fragments},
                    {"mismatches", result.mismatches}});
  if (retained.seconds > 0) {
    json["retain_s"] = retained.seconds;
    json["retained_fragments"] = settings.retained;
    json["chunks_per_core_second_without_retain"] = retained.chunks_per_core_second_without;
    json["of_without_retain"] = per_core(result) / retained.chunks_per_core_second_without;
  }
  return json;
}

void print(const BuildBenchSettings& settings, const Retained& retained, const BuildBenchResult& result) {
  const std::string robs = settings.robs == 1 ? "" : fmt::format("{} ROBs of ", settings.robs);
  const bool full = settings.mode == "full";
  const double ceiling = full ? result.read_ceiling_bytes_per_second : result.copy_ceiling_bytes_per_second;
  const std::string shape = !full                  ? fmt::format("runs of {}", settings.run_length)
                            : settings.groups == 0 ? "a stream of each"
                                                   : base::counted(settings.groups, "stream");
  fmt::print("{} {}, {}{} x {} B, {}, {}{}\n", settings.mode, settings.source, robs, base::counted(settings.links, "link"),
             settings.chunk_bytes, shape, base::counted(settings.workers, "worker"),
             settings.checker.empty() ? "" : ", " + settings.checker);
  fmt::print("  chunks     {:8.1f} M/s      {:8.1f} M per core-second\n",
             static_cast<double>(result.chunks) / result.seconds * 1e-6, per_core(result) * 1e-6);
  fmt::print("  fragments  {:8.3f} M/s\n", static_cast<double>(result.fragments) / result.seconds * 1e-6);
  fmt::print("  payload    {:8.2f} GB/s     {:8.2f} of the {} ceiling ({:.1f} GB/s)\n",
             static_cast<double>(result.payload_bytes) / result.seconds * 1e-9,
             per_core(result) * settings.chunk_bytes / ceiling, full ? "read" : "copy", ceiling * 1e-9);
  if (retained.seconds > 0) {
    fmt::print("  retained   {}, {:.2f} of the chunks per core-second without ({:.1f} M)\n",
               base::counted(settings.retained, "fragment"), per_core(result) / retained.chunks_per_core_second_without,
               retained.chunks_per_core_second_without * 1e-6);
  }
  fmt::print("  verified   {}; {}; {} incomplete, {} lost\n", base::counted(result.verified_fragments, "fragment"),
             mismatches(result.mismatches), result.incomplete, base::counted(result.lost + result.unaccounted, "chunk"));
}

void add_build(Command& bench) {
  struct Options {
    BuildBenchSettings settings;
    std::optional<std::uint32_t> chunk_bytes;
    Retained retained;
    std::chrono::nanoseconds retain{0};
    std::string json;
    bool not_pinned = false;
  };
  auto options = std::make_shared<Options>();
  BuildBenchSettings& settings = options->settings;
  Command& build =
      bench.verb("build", "Chunks to fragments: the builder, its extractor and a consumer, from pages made beforehand");
  build.example("rodeo bench build", "192 links x 40 B, runs of 24, one worker")
      .example("rodeo bench build --run-length 1", "links interleaved chunk by chunk")
      .example("rodeo bench build --source blocks", "from raw FELIX blocks, decoded in the worker")
      .example("rodeo bench build --mode full --links 24 --groups 1", "one FULL-mode stream, 24 links in turn")
      .example("rodeo bench build --retain 1s", "each fragment kept for a second at 100 kHz: 100,000 fragments");
  build.choice("--mode", settings.mode, {"gbt", "full"}, "Builder");
  build.choice("--source", settings.source, {"runs", "blocks"}, "Form of the input's data");
  build.option("--run-length", settings.run_length, "Chunks in a run");
  build.option("--links", settings.links, "Links");
  build.option("--groups", settings.groups, "FULL mode: independent streams, whose links take turns; 0: one per link");
  build.option("--chunk-bytes", options->chunk_bytes, "Size of a chunk [B]; 40, in FULL mode 5000");
  build.option("--robs", settings.robs, "ROBs (cards) of --links links each, every one with its own builder");
  build.option("--workers", settings.workers, "Builder threads of each ROB");
  build.option("--seconds", settings.seconds, "Length of the measurement [s]");
  build.option("--window", settings.window, "Events that may be open at once");
  build.option("--checker", settings.checker, "Integrity check per chunk: crc32");
  build.option("--extractor", settings.extractor, "Trigger-information extraction");
  build.duration("--retain", options->retain,
                 "Keep each fragment for this time, at --retain-rate; compared with a run without");
  build.rate("--retain-rate", options->retained.rate_hz, "Event rate for --retain");
  build.flag("--not-pinned", options->not_pinned, "Leave the workers to the scheduler");
  build.json_file(options->json);
  build.run([options]() -> Result<ExitCode> {
    options->settings.chunk_bytes = options->chunk_bytes.value_or(options->settings.mode == "full" ? 5000 : 40);
    options->settings.pinned = !options->not_pinned;
    const BuildBenchSettings& given = options->settings;
    RODEO_TRY(check_numbers(
        {{"--run-length", static_cast<double>(given.run_length), 1, 65'535},
         {"--links", static_cast<double>(given.links), 1, kMostBenchLinks},
         {"--groups", static_cast<double>(given.groups), 0, static_cast<double>(given.links)},
         {"--chunk-bytes", static_cast<double>(given.chunk_bytes), given.checker.empty() ? 8.0 : 12.0, kMostBenchChunk},
         {"--robs", static_cast<double>(given.robs), 1, 256},
         {"--workers", static_cast<double>(given.workers), 1, kMostBenchWorkers},
         {"--seconds", given.seconds, 0.001, kLongestBench},
         {"--window", static_cast<double>(given.window), 1, 1 << 24}}));
    Retained retained = options->retained;
    retained.seconds = std::chrono::duration<double>(options->retain).count();
    if (retained.seconds > 0 && given.mode != "gbt")
      return value_error("--retain is for --mode gbt: a consumer of a FULL-mode stream copies the fragments that it keeps",
                         "rodeo bench build --help");
    RODEO_TRY(check_numbers({{"--retain x --retain-rate", retained.seconds * retained.rate_hz, 0, 1 << 22}}));
    base::ComponentRegistry registry;
    RODEO_TRY(registry.add_library("built in", readout::register_defaults));
    if (retained.seconds > 0) {
      retained.chunks_per_core_second_without = per_core(run_proven_build_bench(given, registry));
      options->settings.retained =
          std::max<std::uint64_t>(1, static_cast<std::uint64_t>(retained.seconds * retained.rate_hz));
    }
    const BuildBenchResult result = run_build_bench(options->settings, registry);
    if (options->json != "-") print(options->settings, retained, result);
    if (!options->json.empty()) RODEO_TRY(write_json(options->json, json_of(options->settings, retained, result)));
    if (result.proven()) return ExitCode::done;
    return std::unexpected(not_proven(result.mismatches, result.incomplete, result.lost + result.unaccounted));
  });
}

}  // namespace

Result<void> check_numbers(std::initializer_list<BenchNumber> numbers) {
  for (const BenchNumber& number : numbers) {
    if (number.value >= number.least && number.value <= number.most) continue;
    return value_error(fmt::format("{} {}: expected {} to {}", number.option, number.value, number.least, number.most),
                       "rodeo bench --help");
  }
  return {};
}

void add_bench(Command& root) {
  Command& bench = root.verb("bench", "Measures the product on this machine");
  add_build(bench);
  add_bench_latency(bench);
  add_bench_scaling(bench);
  add_bench_transport(bench);
  add_bench_farm(bench);
  add_bench_events(bench);
  add_bench_route(bench);
  add_bench_serve(bench);
  add_bench_statistics(bench);
  add_bench_data(bench);
  add_bench_figures(bench);
}

}  // namespace rodeo::bench
