// `rodeo bench events`: whole events built by filter nodes from readouts, with and without traffic shaping, compared with
// the transport alone.
#include <fmt/core.h>

#include "base/sentence.h"
#include "base/units.h"
#include "bench/bench.h"
#include "bench/farm/event_bench.h"
#include "bench/proof.h"
#include "bench/readout/build_bench.h"

namespace rodeo::bench {

using namespace cli;

namespace {

Json json_of(const EventRates& rates) {
  return Json::object({{"events_per_second", rates.events_per_second},
                       {"bytes_per_second", rates.bytes_per_second},
                       {"bytes_per_core_second", rates.bytes_per_core_second},
                       {"latency_p50_us", rates.latency_p50_us},
                       {"latency_p99_us", rates.latency_p99_us},
                       {"building_p50_us", rates.building_p50_us},
                       {"building_p99_us", rates.building_p99_us},
                       {"waits_for_credit_per_event", rates.waits_for_credit}});
}

Json json_of(const EventBenchSettings& settings, const EventBenchResult& result) {
  Json json = json_of(result.free);
  const Json more = Json::object({{"provider", settings.provider},
                                  {"readouts", settings.readouts},
                                  {"nodes", settings.nodes},
                                  {"connections", settings.readouts * settings.nodes},
                                  {"fragment_bytes", settings.fragment_bytes},
                                  {"event_bytes", std::uint64_t{settings.readouts} * settings.fragment_bytes},
                                  {"events_of_a_node", settings.slots},
                                  {"kept_fragments", settings.kept},
                                  {"page_bytes", settings.page_bytes},
                                  {"seconds", result.seconds},
                                  {"transport_bytes_per_second", result.transport_bytes_per_second},
                                  {"transport_bytes_per_core_second", result.transport_bytes_per_core_second},
                                  {"bare_bytes_per_second", result.bare_bytes_per_second},
                                  {"bare_bytes_per_core_second", result.bare_bytes_per_core_second},
                                  {"of_transport", result.of_transport},
                                  {"of_transport_per_core", result.of_transport_per_core},
                                  {"of_bare", result.of_bare},
                                  {"of_bare_per_core", result.of_bare_per_core},
                                  {"events", result.events},
                                  {"verified_fragments", result.verified_fragments},
                                  {"mismatches", result.mismatches},
                                  {"lost", result.lost}});
  for (const auto& [key, value] : more.members()) json[key] = value;
  json["shaped"] = nullptr;
  if (!result.has_shaped) return json;
  json["shaped"] = json_of(result.shaped);
  json["shaped"]["credit_fragments"] = settings.credit_fragments;
  json["shaped"]["credit_bytes"] = settings.credit_bytes;
  json["shaped"]["of_free"] = result.shaped_of_free;
  return json;
}

void print(const char* what, const EventRates& rates) {
  fmt::print("  {:<11}{:8.0f} events/s {:8.2f} GB/s     {:.2f} GB per core-second of all\n", what, rates.events_per_second,
             rates.bytes_per_second * 1e-9, rates.bytes_per_core_second * 1e-9);
  fmt::print(
      "             latency p50 {:.0f} us    p99 {:.0f} us, from the first request for an event to its last fragment\n",
      rates.latency_p50_us, rates.latency_p99_us);
}

void print(const EventBenchSettings& settings, const EventBenchResult& result) {
  fmt::print("{}, {} x {} B, {}, {} of a node under way\n", settings.provider, base::counted(settings.readouts, "readout"),
             settings.fragment_bytes, base::counted(settings.nodes, "node"), base::counted(settings.slots, "event"));
  print("building", result.free);
  fmt::print(
      "             {:.2f} of requests and replies alone ({:.2f} GB/s), {:.2f} of bare pages ({:.2f} GB/s); by CPU {:.2f} "
      "and {:.2f}\n",
      result.of_transport, result.transport_bytes_per_second * 1e-9, result.of_bare, result.bare_bytes_per_second * 1e-9,
      result.of_transport_per_core, result.of_bare_per_core);
  if (result.has_shaped) {
    print("shaped", result.shaped);
    fmt::print(
        "             {:.2f} of the rate without; at most {} and {} of a node under way; an event waits {:.1f} times\n",
        result.shaped_of_free,
        settings.credit_fragments == 0 ? "any number of fragments" : base::counted(settings.credit_fragments, "fragment"),
        settings.credit_bytes == 0 ? "any number of bytes"
                                   : base::format_quantity(static_cast<double>(settings.credit_bytes), "B"),
        result.shaped.waits_for_credit);
  }
  fmt::print("  verified   {}, {} of them; {}, {} lost\n", base::counted(result.events, "event"),
             base::counted(result.verified_fragments, "fragment"), mismatches(result.mismatches), result.lost);
}

}  // namespace

void add_bench_events(Command& bench) {
  struct Options {
    EventBenchSettings settings;
    std::string json;
  };
  auto options = std::make_shared<Options>();
  EventBenchSettings& settings = options->settings;
  Command& events = bench.verb(
      "events", "Whole events, built by filter nodes from the fragments of all readouts, beside the transport alone");
  events.example("rodeo bench events", "8 readouts and 4 nodes, with shaping and without")
      .example("rodeo bench events --fragment-bytes 7700 --kept 4096", "small fragments: the cost of a request")
      .example("rodeo bench events --credit-fragments 1 --seconds 2 --json -",
               "each node has one fragment under way at a time");
  events.choice("--provider", settings.provider, {"tcp", "shm", "verbs"}, "Network provider");
  events.option("--readouts", settings.readouts, "Readouts, each with a handler of its own; threads of one process");
  events.option("--nodes", settings.nodes, "Filter nodes; threads of a second process, with the supervisor");
  events.option("--fragment-bytes", settings.fragment_bytes, "ROD data of a fragment [B], a multiple of 4");
  events.option("--events", settings.slots, "Events that a node has at a time");
  events.option("--workers", settings.workers, "Threads of a node that compare each byte of its events");
  events.option("--kept", settings.kept, "Fragments that a readout keeps");
  events.option("--page-bytes", settings.page_bytes, "Size of a page [B]");
  events.option("--pages", settings.pages, "Pages of each connection");
  events.option("--credit-fragments", settings.credit_fragments,
                "Shaping: fragments that a node may have requested at a time; 0: no limit");
  events.option("--credit-bytes", settings.credit_bytes,
                "Shaping: bytes that a node may have requested at a time [B]; both 0: no measurement with shaping");
  events.option("--seconds", settings.seconds, "Length of each of the measurements [s], cut into five rounds");
  events.json_file(options->json);
  events.run([options]() -> Result<ExitCode> {
    const EventBenchSettings& given = options->settings;
    RODEO_TRY(check_numbers({{"--readouts", static_cast<double>(given.readouts), 1, 64},
                             {"--nodes", static_cast<double>(given.nodes), 1, 64},
                             {"--fragment-bytes", static_cast<double>(given.fragment_bytes), 16, 16 << 20},
                             {"--events", static_cast<double>(given.slots), 1, 4096},
                             {"--workers", static_cast<double>(given.workers), 1, 64},
                             {"--kept", static_cast<double>(given.kept), 2.0 * given.nodes * given.slots, 1 << 20},
                             {"--page-bytes", static_cast<double>(given.page_bytes), 4096, 1 << 20},
                             {"--pages", static_cast<double>(given.pages), 2, 1024},
                             {"--credit-fragments", static_cast<double>(given.credit_fragments), 0, 1 << 20},
                             {"--credit-bytes", static_cast<double>(given.credit_bytes), 0, 1e12},
                             {"--seconds", given.seconds, 0.001, kLongestBench}}));
    if (given.fragment_bytes % 4 != 0)
      return value_error(fmt::format("--fragment-bytes {}: ROD data are words of 4 bytes", given.fragment_bytes),
                         "rodeo bench --help");
    const EventBenchResult result = run_event_bench(given);
    if (options->json != "-") print(given, result);
    if (!options->json.empty()) RODEO_TRY(write_json(options->json, json_of(given, result)));
    if (result.mismatches + result.lost == 0 && result.verified_fragments > 0) return ExitCode::done;
    return std::unexpected(not_proven(result.mismatches, 0, result.lost));
  });
}

}  // namespace rodeo::bench
