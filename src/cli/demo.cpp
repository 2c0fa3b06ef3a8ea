// `rodeo demo`: the whole chain on this machine, in a control room: an emulated FELIX card, builder, verifying processor,
// sampler, event files, with --chain also a router and a farm. Then it reads the files back byte by byte. Without --chain it
// needs no control room: the readout then runs in this process.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/named_counters.h"
#include "base/sentence.h"
#include "base/units.h"
#include "cli/chain_parts.h"
#include "cli/demo_parts.h"
#include "cli/demo_room.h"
#include "cli/part_process.h"
#include "cli/readout_action.h"
#include "cli/system.h"
#include "cli/texts.h"
#include "cli/verbs.h"
#include "process/control_request.h"

namespace rodeo::cli {
namespace {

constexpr double kMostRateHz = 1e9;  // of emulator.trigger.rate

std::vector<std::string> overrides_of(const DemoOptions& options, const DemoCard& card, const DemoDirectory& directory) {
  std::vector<std::string> out = {
      fmt::format("readout.input.cards={}", card.address),
      fmt::format("readout.consumer[2].directory={}", directory.path().string()),
      fmt::format("readout.consumer[2].fraction={}", written_fraction(options, directory.free_bytes())),
      fmt::format("readout.consumer[2].max_bytes={:.0f}", kMostDemoBytes),
  };
  for (const std::string& one : options.settings) {
    if (!one.starts_with("emulator.") && !one.starts_with("router.")) out.push_back(one);
  }
  return out;
}

/// The errors in the settings of a chain, checked before any process starts.
ConfigurationErrors chain_errors(const DemoOptions& options, const DemoCard& card, const DemoDirectory& directory,
                                 const std::string& configuration) {
  ConfigurationErrors all;
  const auto note = [&](const auto& loaded) {
    if (!loaded) std::ranges::copy(loaded.error(), std::back_inserter(all));
  };
  for (const ChainPart& part : chain_parts(options, card, directory)) {
    const ConfigurationSource source{.file = configuration, .overrides = part.overrides};
    if (part.kind == "emulator") note(load_emulator(source));
    if (part.kind == "router") note(load_router(source));
    if (part.kind == "readout") note(load_readout(source));
    if (part.kind == "supervisor") note(load_supervisor(source));
    if (part.kind == "node") note(load_node(source));
    if (part.kind == "recorder") note(load_recorder(source));
    if (!all.empty()) break;  // several processes have the same keys
  }
  return all;
}

std::uint64_t number_of(const Json& object, std::string_view key) {
  return static_cast<std::uint64_t>(member(object, key).number());
}

/// The emulator's part of the report: triggers offered, accepted and vetoed, what its end cut off, CPU time. Asked twice a
/// second, and at the end.
class EmulatorView {
 public:
  explicit EmulatorView(std::string emulator) : emulator_(std::move(emulator)) {}

  void amend(readout::ReadoutStatus& status, bool last) {
    if (last || status.seconds >= next_seconds_) {
      next_seconds_ = status.seconds + 0.5;
      auto report = process::ask_process(process::kEmulator, emulator_, Json::object({{"command", "status"}}));
      if (report) {
        report_ = std::move(*report);
      } else if (status.failure.empty() && last) {
        status.failure = "the emulated card ended before the run: " + report.error().what;
      }
    }
    if (report_.members().empty()) return;  // it has not answered yet
    const Json& trigger = member(report_, "trigger");
    const std::uint64_t accepted = number_of(trigger, "accepted");
    base::counter_named(status.input, "triggers") = accepted;
    base::counter_named(status.input, "vetoed") = number_of(trigger, "offered") - accepted;
    std::uint64_t chunks_cut_off = 0;
    std::uint64_t triggers_cut_off = 0;
    for (const Json& function : member(report_, "functions").elements()) {
      const Json& counters = member(function, "counters");
      chunks_cut_off += number_of(counters, "chunks_cut_off");
      triggers_cut_off += number_of(counters, "triggers_cut_off");
    }
    std::uint64_t triggers_missed = 0;
    for (const Json& follower : member(trigger, "followers").elements()) triggers_missed += number_of(follower, "missed");
    for (const auto& [name, value] : {std::pair("chunks_cut_off", chunks_cut_off),
                                      {"triggers_cut_off", triggers_cut_off},
                                      {"triggers_missed", triggers_missed}}) {
      if (value > 0) base::counter_named(status.input, name) = value;
    }
    status.trigger_seconds = member(trigger, "offering_seconds").number();
    status.input_cpu_seconds = member(report_, "cpu_seconds").number();
  }

 private:
  std::string emulator_;
  double next_seconds_ = 0;
  Json report_ = Json::object();
};

/// Verifies the files, and adds the result to the report.
Result<bool> verify_files(readout::RunReport& report, Json& json) {
  std::vector<std::string> files;
  for (const FragmentConsumer::File& one : report.files) files.push_back(one.path);
  FilesReadBack found = RODEO_TRY(read_back(files, report.bytes_written));
  json["files_verified"] = std::move(found.json);
  if (found.findings > 0 && report.condition != readout::Condition::aborted) report.condition = readout::Condition::wrong;
  // A demo without proven chunks is not a success.
  if (report.verified_chunks == 0) say("no chunk was verified during the run\n");
  return found.proved() && report.verified_chunks > 0;
}

/// Runs the readout in this process and the emulated card in its own, without Python.
Result<ExitCode> run_alone(const DemoOptions& options, const DemoCard& card, const DemoDirectory& directory,
                           const std::filesystem::path& configuration) {
  const std::string file = configuration.filename();
  const PartProcess emulator(
      {.command = {"emulate", configuration},
       .overrides = card.emulator_overrides(options),
       .log = directory.path() / "emulator.log",
       .there =
           [&] {
             return process::ask_process(process::kEmulator, card.name, Json::object({{"command", "status"}})).has_value();
           },
       .lack = "no emulated card"});
  auto loaded = load_readout({.file = file,
                              .text = std::string(built_in_text(file)),
                              .overrides = overrides_of(options, card, directory),
                              .environment = false});
  if (!loaded) return report_errors(loaded.error());
  loaded->may_change_name = true;
  EmulatorView view(card.name);
  RunOptions how;
  how.seconds = options.seconds;
  how.json_file = options.json_file;
  const auto amend = [&](readout::ReadoutStatus& status, bool last) { view.amend(status, last); };
  return run_readout(*loaded, how, {.amend = amend, .after = &verify_files});
}

/// The data path, for people.
const char* way_of(const DemoOptions& options) {
  if (options.farm()) return "card -> router -> network -> two readouts -> supervisor, two filter nodes -> recorder";
  return options.chain ? "card -> router -> network -> GBT builder -> verify -> sampler -> file writer"
                       : "card -> GBT builder -> verify -> sampler -> file writer";
}

Result<ExitCode> run(const DemoOptions& options) {
  if (options.links < 1 || options.links > DemoCard::kMostLinks) {
    return value_error(fmt::format("--links {}: one card has 1 to {} links", options.links, DemoCard::kMostLinks),
                       "several cards need a configuration: rodeo emulate --help");
  }
  RODEO_TRY(check_seconds(options.seconds, "the demo ends after this time; Ctrl-C ends it earlier"));
  if (!(options.rate() > 0 && options.rate() <= kMostRateHz))
    return value_error(fmt::format("--rate {}: expected more than 0 and at most {}",
                                   base::format_quantity(options.rate(), "Hz"), base::format_quantity(kMostRateHz, "Hz")),
                       "`rodeo bench build` runs as fast as this machine can");
  if (options.no_farm && !options.chain)
    return value_error("--no-farm: only the chain has a farm", "rodeo demo --chain --no-farm");
  const DemoDirectory directory(options.keep);
  const std::string file = options.farm() ? "farm/chain.toml" : options.chain ? "chain.toml" : "demo.toml";
  const std::filesystem::path configuration = directory.path() / std::filesystem::path(file).filename();
  RODEO_TRY(write_text(configuration, built_in_text(file)));
  const DemoCard card(options.links);
  // Errors in the settings are reported here, not by a process that ends at once.
  if (const auto settings = load_emulator({.file = configuration.string(), .overrides = card.emulator_overrides(options)});
      !settings)
    return report_errors(settings.error());
  if (options.farm()) {
    if (const auto errors = chain_errors(options, card, directory, configuration); !errors.empty())
      return report_errors(errors);
  }
  say("{} of an emulated FELIX card at {} for {:g} s: {}\nfiles in {} ({})\n", base::counted(options.links, "link"),
      base::format_quantity(options.rate(), "Hz"), options.seconds, way_of(options), directory.path().string(),
      options.keep ? "kept" : "removed by the next demo; --keep keeps them");
  if (options.chain || (!options.no_page && options.json_file.empty())) {
    if (const auto ended = RODEO_TRY(run_in_control_room(options, card, directory, configuration))) return *ended;
  }
  return run_alone(options, card, directory, configuration);
}

}  // namespace

void add_demo(Command& root) {
  auto options = std::make_shared<DemoOptions>();
  Command& demo = root.verb("demo", "Runs the whole chain on this machine, verified end to end");
  demo.example("rodeo demo", "192 links at 100 kHz for 10 s")
      .example("rodeo demo --rate 20kHz --seconds 60", "slower and longer")
      .example("rodeo demo --chain", "all processes: card, router, two readouts, supervisor, two filter nodes, recorder")
      .example("rodeo demo --chain --no-farm", "card, router, network, readout, at 100 kHz")
      .example("rodeo demo --json -", "the report for programs");
  demo.rate("--rate", options->rate_hz,
            fmt::format("Triggers offered per second (default {}, with a farm {})",
                        base::format_quantity(DemoOptions::kUsualRateHz, "Hz"),
                        base::format_quantity(DemoOptions::kFarmRateHz, "Hz")));
  demo.option("--links", options->links, "Number of emulated links");
  demo.option("--seconds", options->seconds, "Time of the run").value_name("S");
  demo.flag("--chain", options->chain, "Add a router, the network and a farm, each part in its own process");
  demo.flag("--no-farm", options->no_farm, "The chain ends in the readout, which writes a share of the fragments to files");
  demo.flag("--no-page", options->no_page,
            "Without a page; without --chain also without a control room: the readout runs in this process");
  demo.flag("--keep", options->keep, "Keep the files; otherwise the next demo removes them");
  demo.option("--set", options->settings, "Set a key of the example: KEY=VALUE").value_name("KEY=VALUE");
  demo.json_file(options->json_file);
  demo.paragraph(
      "The demo runs examples/demo.toml (with --chain examples/farm/chain.toml, with --no-farm examples/chain.toml), "
      "changed by these options. Every chunk of every fragment is verified during the run. A share of the fragments, or the "
      "events that the farm accepts, is written to event files (at most about 1 GB), which are read back and verified at "
      "the end. With the farm the last line says where each trigger is: accepted and in a file, rejected, debug, or lost by "
      "its reason. A machine that cannot keep up shows dead time, never loss. A control room runs the demo, and prints the "
      "address of its page; without --chain, --json and --no-page need no control room. Exit status 0: all is well; 1: the "
      "run failed; 6: the farm lost events, or does not know whether it did; 7: data did not verify, or none were "
      "verified.");
  demo.run([options] { return run(*options); });
}

}  // namespace rodeo::cli
