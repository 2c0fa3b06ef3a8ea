// `rodeo bench latency`: the time from the hand-over of an event's last data to its first consumer.
#include <fmt/core.h>

#include "base/sentence.h"
#include "bench/bench.h"
#include "bench/readout/build_bench.h"
#include "bench/readout/latency_bench.h"
#include "readout/defaults.h"
#include "settings/json.h"

namespace rodeo::bench {

using namespace cli;

namespace {

double us(std::uint64_t ns) { return static_cast<double>(ns) * 1e-3; }

Json json_of(const LatencyBenchSettings& settings, const LatencyBenchResult& result) {
  return Json::object({{"links", settings.links},
                       {"chunk_bytes", settings.chunk_bytes},
                       {"workers", settings.workers},
                       {"offered_rate_hz", settings.rate_hz},
                       {"pinned", settings.pinned},
                       {"generator_has_a_core", result.generator_has_a_core},
                       {"seconds", result.seconds},
                       {"cpu_seconds", result.cpu_seconds},
                       {"fragments", result.fragments},
                       {"rate_hz", static_cast<double>(result.fragments) / result.seconds},
                       {"vetoed", result.vetoed},
                       {"incomplete", result.incomplete},
                       {"lost", result.lost},
                       {"unaccounted", result.unaccounted},
                       {"latency_p50_us", us(result.p50_ns)},
                       {"latency_p99_us", us(result.p99_ns)},
                       {"latency_max_us", us(result.max_ns)}});
}

void print(const LatencyBenchSettings& settings, const LatencyBenchResult& result) {
  fmt::print("gbt, {} x {} B at {:.1f} kHz from the internal generator, {}{}\n", base::counted(settings.links, "link"),
             settings.chunk_bytes, settings.rate_hz * 1e-3, base::counted(settings.workers, "spinning worker"),
             settings.pinned ? ", pinned" : "");
  fmt::print("  fragments  {} at {:.1f} kHz; {} triggers vetoed, {} incomplete, {} chunks lost\n", result.fragments,
             static_cast<double>(result.fragments) / result.seconds * 1e-3, result.vetoed, result.incomplete,
             result.lost + result.unaccounted);
  fmt::print("  latency    p50 {:.1f} us    p99 {:.1f} us    max {:.1f} us, from hand-over to first consumer\n",
             us(result.p50_ns), us(result.p99_ns), us(result.max_ns));
  if (!result.generator_has_a_core)
    fmt::print("  the generator shares a core with a worker: these times include waits for the scheduler\n");
}

}  // namespace

void add_bench_latency(Command& bench) {
  struct Options {
    LatencyBenchSettings settings;
    std::string json;
    bool not_pinned = false;
  };
  auto options = std::make_shared<Options>();
  LatencyBenchSettings& settings = options->settings;
  Command& latency =
      bench.verb("latency", "How long a complete event waits for its first consumer, at a given trigger rate");
  latency.example("rodeo bench latency", "192 links at 100 kHz")
      .example("rodeo bench latency --rate 500kHz", "five times Run 3's rate");
  latency.rate("--rate", settings.rate_hz, "Triggers per second");
  latency.option("--links", settings.links, "Links");
  latency.option("--chunk-bytes", settings.chunk_bytes, "Size of a chunk [B]");
  latency.option("--workers", settings.workers, "Builder threads");
  latency.option("--seconds", settings.seconds, "Length of the measurement [s]");
  latency.flag("--not-pinned", options->not_pinned, "Leave the threads to the scheduler");
  latency.json_file(options->json);
  latency.run([options]() -> Result<ExitCode> {
    options->settings.pinned = !options->not_pinned;
    const LatencyBenchSettings& given = options->settings;
    RODEO_TRY(check_numbers({{"--links", static_cast<double>(given.links), 1, kMostBenchLinks},
                             {"--chunk-bytes", static_cast<double>(given.chunk_bytes), 8, kMostBenchChunk},
                             {"--workers", static_cast<double>(given.workers), 1, kMostBenchWorkers},
                             {"--seconds", given.seconds, 0.001, kLongestBench}}));
    base::ComponentRegistry registry;
    RODEO_TRY(registry.add_library("built in", readout::register_defaults));
    const LatencyBenchResult result = run_latency_bench(options->settings, registry);
    if (options->json != "-") print(options->settings, result);
    if (!options->json.empty()) RODEO_TRY(write_json(options->json, json_of(options->settings, result)));
    if (result.incomplete + result.lost + result.unaccounted != 0)
      return std::unexpected(not_proven(0, result.incomplete, result.lost + result.unaccounted));
    return ExitCode::done;
  });
}

}  // namespace rodeo::bench
