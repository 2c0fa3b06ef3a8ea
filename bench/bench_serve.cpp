// `rodeo bench serve`: the transfer of fragments from readouts to filter nodes, compared with the same network without
// Rodeo.
#include <fmt/core.h>

#include "base/sentence.h"
#include "bench/bench.h"
#include "bench/network/serve_bench.h"
#include "bench/proof.h"
#include "bench/readout/build_bench.h"

namespace rodeo::bench {

using namespace cli;

namespace {

Json json_of(const ServeBenchSettings& settings, const ServeBenchResult& result) {
  return Json::object({{"provider", settings.provider},
                       {"fragment_bytes", settings.fragment_bytes},
                       {"readouts", settings.readouts},
                       {"nodes", settings.nodes},
                       {"events_of_a_node", settings.events},
                       {"kept_fragments", settings.kept},
                       {"page_bytes", settings.page_bytes},
                       {"seconds", result.seconds},
                       {"fragments_per_second", result.fragments_per_second},
                       {"fragments_per_core_second", result.fragments_per_core_second},
                       {"bytes_per_second", result.bytes_per_second},
                       {"bytes_per_core_second", result.bytes_per_core_second},
                       {"bare_bytes_per_second", result.bare_bytes_per_second},
                       {"bare_bytes_per_core_second", result.bare_bytes_per_core_second},
                       {"filled_bytes_per_second", result.filled_bytes_per_second},
                       {"of_bare", result.of_bare},
                       {"of_bare_per_core", result.of_bare_per_core},
                       {"of_filled", result.of_filled},
                       {"events_per_second", result.events_per_second},
                       {"assignments_per_second", result.events_per_second},
                       {"latency_p50_us", result.latency_p50_us},
                       {"latency_p99_us", result.latency_p99_us},
                       {"verified_fragments", result.verified_fragments},
                       {"mismatches", result.mismatches},
                       {"lost", result.lost}});
}

void print(const ServeBenchSettings& settings, const ServeBenchResult& result) {
  fmt::print("{}, {} x {} B, {}, {} of a node under way\n", settings.provider, base::counted(settings.readouts, "readout"),
             settings.fragment_bytes, base::counted(settings.nodes, "node"), base::counted(settings.events, "event"));
  fmt::print("  fragments  {:8.1f} k/s      {:8.1f} k per core-second of the readouts\n", result.fragments_per_second * 1e-3,
             result.fragments_per_core_second * 1e-3);
  fmt::print(
      "  payload    {:8.2f} GB/s     {:8.2f} of bare pages ({:.2f} GB/s), {:.2f} of those that are copied before they go\n",
      result.bytes_per_second * 1e-9, result.of_bare, result.bare_bytes_per_second * 1e-9, result.of_filled);
  fmt::print("  per core   {:8.2f} GB/s     {:8.2f} of bare pages ({:.2f} GB/s), by the CPU of both sides\n",
             result.bytes_per_core_second * 1e-9, result.of_bare_per_core, result.bare_bytes_per_core_second * 1e-9);
  fmt::print("  events     {:8.1f} k/s\n", result.events_per_second * 1e-3);
  fmt::print("  latency    p50 {:.1f} us    p99 {:.1f} us, from the first request for an event to its last fragment\n",
             result.latency_p50_us, result.latency_p99_us);
  fmt::print("  verified   {}; {}, {} lost\n", base::counted(result.verified_fragments, "fragment"),
             mismatches(result.mismatches), result.lost);
}

}  // namespace

void add_bench_serve(Command& bench) {
  struct Options {
    ServeBenchSettings settings;
    std::string json;
  };
  auto options = std::make_shared<Options>();
  ServeBenchSettings& settings = options->settings;
  Command& serve = bench.verb(
      "serve", "Fragments that readouts keep, fetched and cleared by nodes in another process, beside bare pages");
  serve.example("rodeo bench serve", "7.7 kB fragments of one readout to one node")
      .example("rodeo bench serve --readouts 4 --nodes 2", "events of four fragments, built by two nodes")
      .example("rodeo bench serve --fragment-bytes 1000", "smaller ones: the cost of a request");
  serve.choice("--provider", settings.provider, {"tcp", "shm", "verbs"}, "Network provider");
  serve.option("--fragment-bytes", settings.fragment_bytes, "ROD data of a fragment [B], a multiple of 4");
  serve.option("--readouts", settings.readouts, "Readouts, each with a handler of its own; threads of one process");
  serve.option("--nodes", settings.nodes, "Nodes that take events in turn; threads of a second process");
  serve.option("--events", settings.events, "Events that a node has under way");
  serve.option("--kept", settings.kept, "Fragments that a readout keeps");
  serve.option("--page-bytes", settings.page_bytes, "Size of a page [B]");
  serve.option("--seconds", settings.seconds, "Length of each of the measurements [s], cut into five rounds");
  serve.json_file(options->json);
  serve.run([options]() -> Result<ExitCode> {
    const ServeBenchSettings& given = options->settings;
    // The events that nodes have under way or have not cleared yet.
    constexpr double kUncleared = 256;
    RODEO_TRY(check_numbers({{"--fragment-bytes", static_cast<double>(given.fragment_bytes), 16, 16 << 20},
                             {"--readouts", static_cast<double>(given.readouts), 1, 64},
                             {"--nodes", static_cast<double>(given.nodes), 1, 64},
                             {"--events", static_cast<double>(given.events), 1, 4096},
                             {"--kept", static_cast<double>(given.kept), given.nodes * (given.events + kUncleared), 1 << 22},
                             {"--page-bytes", static_cast<double>(given.page_bytes), 4096, 1 << 20},
                             {"--seconds", given.seconds, 0.001, kLongestBench}}));
    if (given.fragment_bytes % 4 != 0)
      return value_error(fmt::format("--fragment-bytes {}: ROD data are words of 4 bytes", given.fragment_bytes),
                         "rodeo bench --help");
    const ServeBenchResult result = run_serve_bench(given);
    if (options->json != "-") print(given, result);
    if (!options->json.empty()) RODEO_TRY(write_json(options->json, json_of(given, result)));
    if (result.mismatches + result.lost == 0 && result.verified_fragments > 0) return ExitCode::done;
    return std::unexpected(not_proven(result.mismatches, 0, result.lost));
  });
}

}  // namespace rodeo::bench
