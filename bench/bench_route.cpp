// `rodeo bench route`: the router's work alone, from FELIX blocks to pages that a subscriber in another process checks.
#include <fmt/core.h>

#include "base/sentence.h"
#include "bench/bench.h"
#include "bench/network/route_bench.h"
#include "bench/proof.h"
#include "bench/readout/build_bench.h"

namespace rodeo::bench {

using namespace cli;

namespace {

bool some_unwanted(const RouteBenchSettings& settings) {
  return settings.subscribed != 0 && settings.subscribed < settings.links;
}

Json json_of(const RouteBenchSettings& settings, const RouteBenchResult& result) {
  Json out = Json::object(
      {{"provider", settings.provider},
       {"links", settings.links},
       {"subscribed", settings.subscribed == 0 ? settings.links : settings.subscribed},
       {"chunk_bytes", settings.chunk_bytes},
       {"page_bytes", settings.page_bytes},
       {"seconds", result.seconds},
       {"chunks_per_second", result.chunks_per_second},
       {"chunks_per_core_second", result.chunks_per_core_second},
       {"read_chunks_per_core_second", result.read_chunks_per_core_second},
       {"payload_bytes_per_second", result.payload_bytes_per_second},
       {"copy_ceiling_bytes_per_second", result.copy_ceiling_bytes_per_second},
       {"input_bytes", result.input_bytes},
       {"cpu_seconds", Json::object({{"router", result.router_cpu_seconds}, {"subscriber", result.subscriber_cpu_seconds}})},
       {settings.discard ? "discarded_chunks" : "verified_chunks", result.chunks},
       {"lost", result.lost},
       {"mismatches", result.mismatches}});
  if (some_unwanted(settings)) out["unwanted_link_cost"] = result.unwanted_cost;
  return out;
}

void print(const RouteBenchSettings& settings, const RouteBenchResult& result) {
  fmt::print("{}, {} x {} B from FELIX blocks", settings.provider, base::counted(settings.links, "link"),
             settings.chunk_bytes);
  if (some_unwanted(settings)) fmt::print(", {} of them wanted", settings.subscribed);
  fmt::print("\n  chunks     {:8.1f} M/s      {:8.1f} M per core-second of the router\n", result.chunks_per_second * 1e-6,
             result.chunks_per_core_second * 1e-6);
  fmt::print("  payload    {:8.2f} GB/s     {:8.2f} of the copy ceiling per core ({:.1f} GB/s)\n",
             result.payload_bytes_per_second * 1e-9,
             result.chunks_per_core_second * settings.chunk_bytes / result.copy_ceiling_bytes_per_second,
             result.copy_ceiling_bytes_per_second * 1e-9);
  if (some_unwanted(settings))
    fmt::print("  unwanted   {:8.3f} of the CPU time of a chunk that is wanted; {:.1f} M read per core-second\n",
               result.unwanted_cost, result.read_chunks_per_core_second * 1e-6);
  fmt::print("  cpu        {:8.2f} of the router's core, {:.2f} of the subscriber's\n",
             result.router_cpu_seconds / result.seconds, result.subscriber_cpu_seconds / result.seconds);
  fmt::print("  {:<9}  {}; {}, {} lost\n", settings.discard ? "discarded" : "verified",
             base::counted(result.chunks, "chunk"), mismatches(result.mismatches), result.lost);
}

}  // namespace

void add_bench_route(Command& bench) {
  struct Options {
    RouteBenchSettings settings;
    std::string json;
  };
  auto options = std::make_shared<Options>();
  RouteBenchSettings& settings = options->settings;
  Command& route =
      bench.verb("route", "The router's work: from prepared FELIX blocks to pages for a subscriber in another process");
  route.example("rodeo bench route", "192 links x 40 B over TCP")
      .example("rodeo bench route --subscribed 8", "the cost of the other 184 links, which have no subscriber");
  route.choice("--provider", settings.provider, {"tcp", "shm", "verbs"}, "Network provider");
  route.option("--links", settings.links, "Links in the blocks");
  route.option("--subscribed", settings.subscribed, "Links that the subscriber wants; 0: all");
  route.option("--chunk-bytes", settings.chunk_bytes, "Size of a chunk [B]");
  route.option("--page-bytes", settings.page_bytes, "Size of a page [B]");
  route.flag("--discard", settings.discard, "The subscriber counts chunks, and looks at no byte of them");
  route.option("--seconds", settings.seconds, "Length of the measurement [s], cut into five rounds");
  route.json_file(options->json);
  route.run([options]() -> Result<ExitCode> {
    const RouteBenchSettings& given = options->settings;
    // A chunk and the earlier chunks of its link must fit into one page: the proof takes whole chunks.
    RODEO_TRY(check_numbers({{"--links", static_cast<double>(given.links), 1, 2048},
                             {"--subscribed", static_cast<double>(given.subscribed), 0, static_cast<double>(given.links)},
                             {"--chunk-bytes", static_cast<double>(given.chunk_bytes), 8, 2048},
                             {"--page-bytes", static_cast<double>(given.page_bytes), 4096, 1 << 20},
                             {"--seconds", given.seconds, 0.001, kLongestBench}}));
    const RouteBenchResult result = run_route_bench(given);
    if (options->json != "-") print(given, result);
    if (!options->json.empty()) RODEO_TRY(write_json(options->json, json_of(given, result)));
    if (result.lost + result.mismatches == 0) return ExitCode::done;
    return std::unexpected(not_proven(result.mismatches, 0, result.lost));
  });
}

}  // namespace rodeo::bench
