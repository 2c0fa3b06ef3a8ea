// `rodeo emulate`: runs emulated cards, as vfio-user devices, until Ctrl-C; and talks to a running emulator.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/nearest.h"
#include "base/runtime_dir.h"
#include "base/sentence.h"
#include "base/units.h"
#include "cli/build_text.h"
#include "cli/emulator_control.h"
#include "cli/readout_action.h"
#include "cli/system.h"
#include "cli/verbs.h"
#include "process/last_resort.h"
#include "process/line_socket.h"
#include "process/stop_signals.h"

namespace rodeo::cli {
namespace {

struct RunOptions {
  std::string file;
  std::vector<std::string> settings;
  std::optional<double> seconds;
  bool hold = false;
  std::string json_file;
};

struct TalkOptions {
  std::string name;
  std::string id;
  std::string kind;
  unsigned link = 0;
  std::optional<std::chrono::nanoseconds> duration;
  double value = 95;
  std::optional<unsigned> wait_for;
  std::string lumi_block;
  std::string scan_step;
  OutputFormat format = OutputFormat::table;
};

double bytes_of(const emulator::EmulatorReport& report) {
  double bytes = 0;
  for (const auto& function : report.functions) bytes += static_cast<double>(function.bytes);
  return bytes;
}

std::string live_line(const emulator::EmulatorReport& before, const emulator::EmulatorReport& now) {
  const double seconds = std::max(now.seconds - before.seconds, 1e-9);
  const auto rate = static_cast<double>(now.trigger.accepted - before.trigger.accepted) / seconds;
  std::size_t clients = 0, running = 0;
  for (const auto& function : now.functions) {
    clients += function.clients;
    running += function.running ? 1 : 0;
  }
  return fmt::format("{:>6.0f} s  {}/{} running  {}  triggers {}  dead time {:.1f} %  data {}", now.seconds, running,
                     now.functions.size(), base::counted(clients, "client"), base::format_quantity(rate, "Hz"),
                     now.trigger.dead_time_fraction() * 100,
                     base::format_quantity((bytes_of(now) - bytes_of(before)) / seconds, "B/s"));
}

/// Followers that held triggers back, and for how long.
std::string busy_lines(const emulator::EmulatorReport& report) {
  std::string lines;
  for (const auto& one : report.trigger.followers) {
    if (one.held_up > 0)
      lines +=
          fmt::format("{} was busy for {:.3f} s: {} vetoed, {} of them for it alone; {:.2f} % of those offered\n", one.name,
                      one.busy_seconds, base::counted(one.held_up, "trigger"), one.held_up_alone, one.dead_time * 100);
  }
  return lines;
}

/// The losses of the cards, by name.
std::string loss_lines(const emulator::EmulatorReport& report) {
  std::string lines;
  for (const auto& function : report.functions) {
    std::string lost;
    for (const auto& [name, value] : function.counters) {
      if (name.starts_with("chunks_") || name.starts_with("frames_")) lost += fmt::format(" {} {}", name, value);
    }
    if (!lost.empty())
      lines += fmt::format("{}:{} sent {}, and lost:{}\n", function.name, function.endpoint,
                           base::counted(function.chunks, "chunk"), lost);
  }
  return lines;
}

/// One line, redrawn on a terminal; elsewhere one every ten seconds.
class LiveLine {
 public:
  void show(const emulator::Emulator& emulator) {
    const double interval = terminal_ ? 1 : 10;
    if (emulator.seconds() - before_.seconds < interval) return;
    const emulator::EmulatorReport now = emulator.report();
    std::fprintf(stderr, terminal_ ? "\r\x1b[K%s" : "%s\n", live_line(before_, now).c_str());
    std::fflush(stderr);
    drawn_ = terminal_;
    before_ = now;
  }
  ~LiveLine() {
    if (drawn_) std::fputc('\n', stderr);
  }

 private:
  const bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  bool drawn_ = false;
  emulator::EmulatorReport before_;
};

/// Reports when triggers stand, and when they continue.
void watch(ControlledEmulator& controlled) {
  constexpr std::uint64_t kLookNs = 250'000'000;
  const std::uint64_t now_ns = base::steady_now_ns();
  if (now_ns < controlled.next_look_ns) return;
  controlled.next_look_ns = now_ns + kLookNs;
  controlled.watchdog.look(controlled.triggers.parts(controlled.emulator->report().trigger), now_ns);
  for (const std::string& message : controlled.watchdog.take_messages()) std::fprintf(stderr, "%s\n", message.c_str());
}

Result<ExitCode> run(const RunOptions& options) {
  if (options.file.empty()) {
    return usage_error("a configuration is missing", "rodeo emulate CONFIG, or one of the verbs: rodeo emulate --help");
  }
  RODEO_TRY(check_seconds(options.seconds, "leave it out to run until Ctrl-C"));
  auto settings = load_emulator({.file = options.file, .overrides = options.settings});
  if (!settings) return report_errors(settings.error());
  // A follower ignores --hold, which every process of a system gets: it has no triggers of its own.
  settings->trigger.hold = settings->trigger.hold || options.hold;
  const auto socket = RODEO_TRY(base::runtime_socket(emulator_socket_name(settings->name)));
  process::LineServer control(socket);
  process::outlive_listeners();
  const process::StopSignals signals;
  process::LastResort last_resort(settings->stop_limit, settings->name);
  ControlledEmulator controlled{.identity = {.kind = "emulator",
                                             .name = settings->name,
                                             .build = build_text(),
                                             .configuration_sha256 = settings->configuration_sha256}};
  emulator::Emulator emulator(std::move(*settings));
  controlled.emulator = &emulator;
  for (const auto& function : emulator.report().functions) {
    std::fprintf(stderr, "%s %s (%s, endpoint %u) is there\n", function.type.c_str(), function.address.c_str(),
                 function.name.c_str(), function.endpoint);
  }
  if (const std::string where = emulator.serves_at(); !where.empty())
    std::fprintf(stderr, "triggers are served at %s\n", where.c_str());
  {
    LiveLine line;
    while (!controlled.stop && !signals.stop_requested()) {
      control.serve(emulator.next_poll(), [&](const std::string& request) { return answer_emulator(controlled, request); });
      emulator.poll();
      if (const auto failure = emulator.failure()) return std::unexpected(*failure);
      line.show(emulator);
      watch(controlled);
      if (options.seconds && emulator.seconds() >= *options.seconds) controlled.stop = true;
    }
  }
  last_resort.begin();
  emulator.finish();
  const emulator::EmulatorReport report = emulator.report();
  std::fprintf(stderr, "%s\n%s%s", live_line({}, report).c_str(), busy_lines(report).c_str(), loss_lines(report).c_str());
  if (!options.json_file.empty()) RODEO_TRY(write_json(options.json_file, emulator_report_json(report)));
  return ExitCode::done;
}

Result<ExitCode> status(const TalkOptions& options) {
  const auto answer = RODEO_TRY(ask_emulator(options.name, Json::object({{"command", "status"}})));
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

Result<ExitCode> fault(const TalkOptions& options) {
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
  RODEO_TRY(ask_emulator(options.name, request));
  std::string what = options.kind;
  if (emulator::fault_has_link(*emulator::fault_kind(options.kind))) what += fmt::format(" of link {}", options.link);
  if (options.kind == "temperature") what += fmt::format(" of {:g} degrees Celsius", options.value);
  if (options.duration) what += fmt::format(" for {}", detail::show_duration(*options.duration));
  fmt::print("{}: {}\n", options.id, what);
  return ExitCode::done;
}

Result<ExitCode> hold(const TalkOptions& options) {
  const auto answer = RODEO_TRY(ask_emulator(options.name, Json::object({{"command", "trigger_hold"}})));
  fmt::print("held after {}\n", base::counted(member(answer, "accepted").unsigned_integer(), "trigger"));
  return ExitCode::done;
}

Result<ExitCode> release(const TalkOptions& options) {
  Json request = Json::object({{"command", "trigger_release"}});
  if (options.wait_for) request["wait_for"] = *options.wait_for;
  RODEO_TRY(ask_emulator(options.name, request));
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

Result<ExitCode> advance(const TalkOptions& options) {
  if (options.lumi_block.empty() && options.scan_step.empty())
    return usage_error("neither --lumi-block nor --scan-step is given",
                       "--lumi-block next, or --scan-step next, or a number");
  Json request = Json::object({{"command", "trigger_advance"}});
  request["lumi_block"] = RODEO_TRY(advance_of(options.lumi_block, "--lumi-block"));
  request["scan_step"] = RODEO_TRY(advance_of(options.scan_step, "--scan-step"));
  const auto answer = RODEO_TRY(ask_emulator(options.name, request));
  fmt::print("from trigger {} on: luminosity block {}, scan step {}\n", member(answer, "sequence").unsigned_integer(),
             member(answer, "lumi_block").unsigned_integer(), member(answer, "scan_step").unsigned_integer());
  return ExitCode::done;
}

Result<ExitCode> stop(const TalkOptions& options) {
  RODEO_TRY(ask_emulator(options.name, Json::object({{"command", "stop"}})));
  return ExitCode::done;
}

std::string fault_list() {
  std::string text = "Faults:";
  for (const auto& info : emulator::fault_infos()) text += fmt::format("\n  {:<20} {}", info.name, info.help);
  return text;
}

}  // namespace

void add_emulate(Command& root) {
  auto run_options = std::make_shared<RunOptions>();
  auto talk = std::make_shared<TalkOptions>();
  Command& verb = root.verb("emulate", "Runs emulated cards, as vfio-user devices");
  verb.example("rodeo emulate examples/felix-card.toml", "until Ctrl-C; in another terminal: rodeo card list")
      .example("rodeo emulate cru.toml --seconds 60 --json -", "a minute, then the report")
      .example("rodeo emulate fault --id 3b:00.0 link_down --link 3", "a fault in a running emulator");
  verb.option("CONFIG", run_options->file, "Configuration with an [emulator] table (TOML)");
  verb.option("--set", run_options->settings, "Set a key; overrides file and environment").value_name("KEY=VALUE");
  verb.option("--seconds", run_options->seconds, "End after this time");
  verb.flag("--hold", run_options->hold, "Start with triggers held (emulator.trigger.hold)");
  verb.json_file(run_options->json_file);
  verb.run([run_options] { return run(*run_options); });

  const auto name = [&](Command& command) {
    command.option("--name", talk->name, "Name of the emulator (emulator.name); needed if several run");
  };
  Command& show = verb.verb("status", "Shows the counters of the cards of a running emulator");
  name(show);
  show.output(talk->format);
  show.run([talk] { return status(*talk); });

  Command& injects = verb.verb("fault", "Injects a fault now");
  injects.example("rodeo emulate fault --id felix link_down --link 3 --duration 2s", "link down, and up again after 2 s")
      .example("rodeo emulate fault --id 3b:00.0 removal", "surprise removal; `replug` ends it");
  injects.option("KIND", talk->kind, "Kind of the fault").required();
  injects.option("--id", talk->id, "Address of the function, name of the card, or name:endpoint").required();
  injects.option("--link", talk->link, "Link, if the fault has one");
  injects.duration("--duration", talk->duration,
                   "End the fault after this time (link_down, stuck_fifo, removal, wrong_bcid)");
  injects.option("--value", talk->value, "For `temperature`: degrees Celsius, -50 to 150");
  name(injects);
  injects.paragraph(fault_list());
  injects.run([talk] { return fault(*talk); });

  Command& holds = verb.verb("hold", "Holds the triggers until they are released");
  name(holds);
  holds.run([talk] { return hold(*talk); });

  Command& releases = verb.verb("release", "Offers triggers again");
  releases.example("rodeo emulate release --wait-for 4", "once four functions are ready; sets wait_for from now on");
  releases.option("--wait-for", talk->wait_for,
                  "Functions that must be ready, instead of emulator.trigger.wait_for; 0: all of this process");
  name(releases);
  releases.run([talk] { return release(*talk); });

  Command& advances = verb.verb("advance", "Advances the luminosity block or the scan step, from the next trigger on");
  advances.example("rodeo emulate advance --lumi-block next", "the next block; events under way belong to the previous one")
      .example("rodeo emulate advance --scan-step 7", "step 7 of a scan");
  advances.option("--lumi-block", talk->lumi_block, "next, or a number").value_name("[next|N]");
  advances.option("--scan-step", talk->scan_step, "next, or a number").value_name("[next|N]");
  name(advances);
  advances.run([talk] { return advance(*talk); });

  Command& ends = verb.verb("stop", "Ends a running emulator in order");
  name(ends);
  ends.run([talk] { return stop(*talk); });
}

}  // namespace rodeo::cli
