// `rodeo emulate`: runs emulated cards, as vfio-user devices, until Ctrl-C; and talks to a running emulator.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>

#include "base/nearest.h"
#include "base/sentence.h"
#include "cli/process_verbs.h"
#include "cli/system.h"
#include "cli/verbs.h"
#include "emulator/service.h"
#include "process/control_request.h"

namespace rodeo::cli {
namespace {

struct AskEmulator : AskOptions {
  std::string id;
  std::string kind;
  unsigned link = 0;
  std::optional<std::chrono::nanoseconds> duration;
  double value = 95;
  std::optional<unsigned> wait_for;
  std::string lumi_block;
  std::string scan_step;

  Result<Json> ask(const Json& request) const { return process::ask_process(process::kEmulator, name, request); }
};

Result<ExitCode> run(const RunOptions& options, bool hold) {
  RODEO_TRY(check_run_options(process::kEmulator, options));
  auto settings = load_emulator(options.source());
  if (!settings) return report_errors(settings.error());
  // A follower ignores --hold, which every process of a system gets: it has no triggers of its own.
  settings->trigger.hold = settings->trigger.hold || hold;
  return run_process(std::make_unique<emulator::EmulatorService>(std::move(*settings)), options);
}

Result<ExitCode> status(const AskEmulator& options) {
  const auto answer = RODEO_TRY(options.ask(Json::object({{"command", "status"}})));
  if (options.format == OutputFormat::json) {
    print(answer.dump() + "\n");
    return ExitCode::done;
  }
  Table table({{"card", "name"},
               {"type", "type"},
               {"address", "address"},
               {"running", "running"},
               {"clients", "clients"},
               {"triggers", "triggers"},
               {"busy [s]", "busy"},
               {"dead time [%]", "dead_time"},
               {"superpages or blocks", "superpages"},
               {"data [GB]", "bytes"}});
  const Json& trigger = member(answer, "trigger");
  const auto followers = member(trigger, "followers").elements();
  const auto busy = [&](const Json& one) {
    const double seconds = member(one, "busy_seconds").number();
    return Cell(Json(seconds), fmt::format("{:.3f}", seconds));
  };
  // Empty if the authority is in another process: only that process knows the offered triggers.
  const auto dead_time = [&](const Json& one) {
    const Json& fraction = member(one, "dead_time_fraction");
    if (fraction.is_null()) return Cell(Json(), "");
    return Cell(Json(fraction.number() * 100), fmt::format("{:.2f}", fraction.number() * 100));
  };
  for (const Json& one : member(answer, "functions").elements()) {
    table.add_row({member(one, "name"), member(one, "type"), member(one, "address"), member(one, "running"),
                   member(one, "clients"), member(one, "triggers"), busy(one), dead_time(one), member(one, "superpages"),
                   Cell(member(one, "bytes"), fmt::format("{:.3f}", member(one, "bytes").number() * 1e-9))});
  }
  // Processes that follow this one's triggers.
  for (const Json& one : followers) {
    if (member(one, "peer").string().empty()) continue;
    table.add_row({member(one, "name"), "follower", member(one, "peer"), member(one, "ready").number() > 0, Json(),
                   member(one, "triggers"), busy(one), dead_time(one), Json(), Json()});
  }
  table.print(options.format);
  const auto running = [&](const Json& one) { return member(one, "running").boolean(); };
  const auto awaited = member(trigger, "awaited_functions").number();
  if (options.format == OutputFormat::table && member(trigger, "held").boolean())
    fmt::print("triggers are held: `rodeo emulate release` releases them\n");
  if (options.format == OutputFormat::table && awaited > 0 &&
      std::ranges::any_of(member(answer, "functions").elements(), running))
    fmt::print("no triggers until {} more function{} running (emulator.trigger.wait_for)\n", awaited,
               awaited == 1 ? " is" : "s are");
  return ExitCode::done;
}

Result<ExitCode> fault(const AskEmulator& options) {
  std::vector<std::string> kinds;
  std::string all;
  for (const auto& info : emulator::fault_infos()) {
    kinds.emplace_back(info.name);
    all += (all.empty() ? "" : ", ") + kinds.back();
  }
  if (std::ranges::find(kinds, options.kind) == kinds.end()) {
    const std::string nearest = base::did_you_mean(options.kind, kinds);
    return value_error(fmt::format("there is no fault `{}`", options.kind), nearest.empty() ? "there are: " + all : nearest);
  }
  if (options.kind == "temperature" && !(options.value >= emulator::kColdest && options.value <= emulator::kHottest))
    return value_error(
        fmt::format("--value {}: expected {} to {} degrees Celsius", options.value, emulator::kColdest, emulator::kHottest),
        "the default is 95");
  Json request = Json::object(
      {{"command", "fault"}, {"id", options.id}, {"kind", options.kind}, {"link", options.link}, {"value", options.value}});
  if (options.duration) request["duration_s"] = std::chrono::duration<double>(*options.duration).count();
  RODEO_TRY(options.ask(request));
  std::string what = options.kind;
  if (emulator::fault_has_link(*emulator::fault_kind(options.kind))) what += fmt::format(" of link {}", options.link);
  if (options.kind == "temperature") what += fmt::format(" of {:g} degrees Celsius", options.value);
  if (options.duration) what += fmt::format(" for {}", detail::show_duration(*options.duration));
  fmt::print("{}: {}\n", options.id, what);
  return ExitCode::done;
}

Result<ExitCode> hold_triggers(const AskEmulator& options) {
  const auto answer = RODEO_TRY(options.ask(Json::object({{"command", "trigger_hold"}})));
  fmt::print("held after {}\n", base::counted(member(answer, "accepted").unsigned_integer(), "trigger"));
  return ExitCode::done;
}

Result<ExitCode> release(const AskEmulator& options) {
  Json request = Json::object({{"command", "trigger_release"}});
  if (options.wait_for) request["wait_for"] = *options.wait_for;
  RODEO_TRY(options.ask(request));
  return ExitCode::done;
}

/// Parses "next" or a number.
Result<Json> advance_of(const std::string& text, const char* option) {
  if (text.empty()) return Json();
  if (text == "next") return Json(true);
  std::uint16_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || end != text.data() + text.size())
    return value_error(fmt::format("{} {}: expected next, or a number from 0 to 65535", option, text), "--lumi-block next");
  return Json(number);
}

Result<ExitCode> advance(const AskEmulator& options) {
  if (options.lumi_block.empty() && options.scan_step.empty())
    return usage_error("neither --lumi-block nor --scan-step is given",
                       "--lumi-block next, or --scan-step next, or a number");
  Json request = Json::object({{"command", "trigger_advance"}});
  request["lumi_block"] = RODEO_TRY(advance_of(options.lumi_block, "--lumi-block"));
  request["scan_step"] = RODEO_TRY(advance_of(options.scan_step, "--scan-step"));
  const auto answer = RODEO_TRY(options.ask(request));
  fmt::print("from trigger {} on: luminosity block {}, scan step {}\n", member(answer, "sequence").unsigned_integer(),
             member(answer, "lumi_block").unsigned_integer(), member(answer, "scan_step").unsigned_integer());
  return ExitCode::done;
}

std::string fault_list() {
  std::string text = "Faults:";
  for (const auto& info : emulator::fault_infos()) text += fmt::format("\n  {:<20} {}", info.name, info.help);
  return text;
}

}  // namespace

void add_emulate(Command& root) {
  auto options = std::make_shared<RunOptions>();
  auto hold = std::make_shared<bool>(false);
  auto ask = std::make_shared<AskEmulator>();
  Command& verb = root.verb("emulate", "Runs emulated cards, as vfio-user devices");
  verb.example("rodeo emulate examples/felix-card.toml", "until Ctrl-C; in another terminal: rodeo card list")
      .example("rodeo emulate cru.toml --seconds 60 --json -", "a minute, then the report")
      .example("rodeo emulate fault --id 3b:00.0 link_down --link 3", "a fault in a running emulator");
  add_run_options(verb, process::kEmulator, *options);
  verb.flag("--hold", *hold, "Start with triggers held (emulator.trigger.hold)");
  verb.run([options, hold] { return run(*options, *hold); });

  const auto name = [ask](Command& command) { add_name(command, process::kEmulator, *ask); };
  Command& show = verb.verb("status", "Shows the counters of the cards of a running emulator");
  name(show);
  show.output(ask->format);
  show.run([ask] { return status(*ask); });

  Command& injects = verb.verb("fault", "Injects a fault now");
  injects.example("rodeo emulate fault --id felix link_down --link 3 --duration 2s", "link down, and up again after 2 s")
      .example("rodeo emulate fault --id 3b:00.0 removal", "surprise removal; `replug` ends it");
  injects.option("KIND", ask->kind, "Kind of the fault").required();
  injects.option("--id", ask->id, "Address of the function, name of the card, or name:endpoint").required();
  injects.option("--link", ask->link, "Link, if the fault has one");
  injects.duration("--duration", ask->duration,
                   "End the fault after this time (link_down, stuck_fifo, removal, wrong_bcid)");
  injects.option("--value", ask->value, "For `temperature`: degrees Celsius, -50 to 150");
  name(injects);
  injects.paragraph(fault_list());
  injects.run([ask] { return fault(*ask); });

  Command& holds = verb.verb("hold", "Holds the triggers until they are released");
  name(holds);
  holds.run([ask] { return hold_triggers(*ask); });

  Command& releases = verb.verb("release", "Offers triggers again");
  releases.example("rodeo emulate release --wait-for 4", "once four functions are ready; sets wait_for from now on");
  releases.option("--wait-for", ask->wait_for,
                  "Functions that must be ready, instead of emulator.trigger.wait_for; 0: all of this process");
  name(releases);
  releases.run([ask] { return release(*ask); });

  Command& advances = verb.verb("advance", "Advances the luminosity block or the scan step, from the next trigger on");
  advances.example("rodeo emulate advance --lumi-block next", "the next block; events under way belong to the previous one")
      .example("rodeo emulate advance --scan-step 7", "step 7 of a scan");
  advances.option("--lumi-block", ask->lumi_block, "next, or a number").value_name("[next|N]");
  advances.option("--scan-step", ask->scan_step, "next, or a number").value_name("[next|N]");
  name(advances);
  advances.run([ask] { return advance(*ask); });

  add_stop(verb, process::kEmulator, ask);
}

}  // namespace rodeo::cli
