// `rodeo bench farm`: a farm's supervisor, connected over the network to thousands of nodes and hundreds of readouts.
#include <fmt/core.h>

#include "base/sentence.h"
#include "bench/bench.h"
#include "bench/farm/farm_bench.h"
#include "bench/farm/farm_meeting.h"
#include "bench/proof.h"

namespace rodeo::bench {

using namespace cli;

namespace {

Json json_of(const FarmBenchSettings& settings, const FarmBenchResult& result) {
  return Json::object({{"nodes", settings.nodes},
                       {"readouts", settings.readouts},
                       {"slots", settings.slots},
                       {"decisions_at_once", settings.at_once},
                       {"seconds", result.seconds},
                       {"cpu_seconds", result.cpu_seconds},
                       {"assignments_per_second", result.assignments / result.seconds},
                       {"assignments_per_core_second", result.assignments / result.cpu_seconds},
                       {"decisions_per_core_second", result.decisions / result.cpu_seconds},
                       {"clears_per_core_second", result.clears / result.cpu_seconds},
                       {"node_requests_per_second", result.requests / result.seconds},
                       {"clear_batches_per_second", result.batches / result.seconds},
                       {"events", result.events},
                       {"assigned_twice", result.assigned_twice},
                       {"undecided", result.undecided},
                       {"uncleared", result.uncleared},
                       {"cleared_twice", result.cleared_twice},
                       {"cleared_early", result.cleared_early},
                       {"other_batches", result.other_batches},
                       {"failures", result.failures},
                       {"mismatches", result.mismatches()}});
}

void print(const FarmBenchSettings& settings, const FarmBenchResult& result) {
  const double load = result.cpu_seconds / result.seconds;
  fmt::print("{} and {}, {} slots each, {} decisions a message\n", base::counted(settings.nodes, "node"),
             base::counted(settings.readouts, "readout"), settings.slots, base::counted(settings.at_once, "decision"));
  fmt::print("  events     {:10.0f} /s assigned, {:.0f} /s decided, {:.0f} /s cleared by all\n",
             result.assignments / result.seconds, result.decisions / result.seconds, result.clears / result.seconds);
  fmt::print("  per core   {:10.0f} /s assigned, by {:.2f} of a core of the supervisor\n",
             result.assignments / result.cpu_seconds, load);
  fmt::print("  messages   {:10.0f} /s from nodes; {:.0f} /s batches of clears to each readout\n",
             result.requests / result.seconds, result.batches / result.seconds);
  fmt::print("  proved     {}, each assigned, decided and cleared on each readout once: {}\n",
             base::counted(result.events, "event"), mismatches(result.mismatches()));
}

}  // namespace

void add_bench_farm(Command& bench) {
  struct Options {
    FarmBenchSettings settings;
    std::string json;
  };
  auto options = std::make_shared<Options>();
  FarmBenchSettings& settings = options->settings;
  Command& farm = bench.verb("farm", "The supervisor of a farm: assignments, decisions and clears, over the network");
  farm.example("rodeo bench farm", "2656 nodes and 600 readouts, at their highest event rate")
      .example("rodeo bench farm --nodes 64 --readouts 8 --seconds 2 --json -", "a small farm");
  farm.option("--nodes", settings.nodes, "Filter nodes, each with a connection of its own");
  farm.option("--readouts", settings.readouts, "Readouts, each with a connection of its own");
  farm.option("--slots", settings.slots, "Events that a node has at a time");
  farm.option("--at-once", settings.at_once, "Decisions that a node sends in one message");
  farm.option("--rate", settings.rate_hz, "Trigger rate [Hz]; 0: as many as the farm takes");
  farm.option("--seconds", settings.seconds, "Length of the measurement [s]");
  farm.json_file(options->json);
  farm.run([options]() -> Result<ExitCode> {
    const FarmBenchSettings& given = options->settings;
    RODEO_TRY(check_numbers({{"--nodes", static_cast<double>(given.nodes), 1, 4000},
                             {"--readouts", static_cast<double>(given.readouts), 1, kMostStandInReadouts},
                             {"--slots", static_cast<double>(given.slots), 1, 1024},
                             {"--at-once", static_cast<double>(given.at_once), 1, 1024},
                             {"--rate", given.rate_hz, 0, 1e9},
                             {"--seconds", given.seconds, 0.001, kLongestBench}}));
    const FarmBenchResult result = run_farm_bench(given);
    if (options->json != "-") print(given, result);
    if (!options->json.empty()) RODEO_TRY(write_json(options->json, json_of(given, result)));
    if (result.mismatches() == 0) return ExitCode::done;
    return std::unexpected(not_proven(result.mismatches(), 0, 0));
  });
}

}  // namespace rodeo::bench
