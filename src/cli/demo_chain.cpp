#include "cli/demo_chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/runtime_dir.h"
#include "base/terminal_text.h"
#include "base/units.h"
#include "cli/chain_parts.h"
#include "cli/chain_report.h"
#include "cli/emulator_control.h"
#include "cli/part_process.h"
#include "process/control_request.h"
#include "process/live_view.h"
#include "process/orderly_run.h"
#include "process/stop_signals.h"
#include "settings/text_file.h"

namespace rodeo::cli {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// The answer of a process to `status`; null while it does not answer.
Json status_of(const std::string& socket) {
  const auto path = base::runtime_socket(socket);
  const auto line = path ? process::ask(*path, R"({"command": "status"})", 500ms) : std::unexpected(path.error());
  const auto answer = line ? Json::parse(*line) : std::unexpected(line.error());
  return answer ? member(*answer, "reply") : Json();
}

std::vector<std::string> verb_of(const std::string& kind) {
  if (kind == "emulator") return {"emulate"};
  if (kind == "router") return {"route"};
  if (kind == "readout") return {"readout"};
  return {"farm", kind == "supervisor" ? "supervise" : kind == "node" ? "filter" : "record"};
}

const char* extension_of(const std::string& kind) {
  return kind == "emulator" ? ".emulator" : kind == "router" ? ".router" : ".control";
}

/// A part of the chain that runs.
class Running {
 public:
  Running(const ChainPart& part, const std::vector<ChainPart>& parts, const DemoCard& card, const DemoDirectory& directory,
          const std::filesystem::path& configuration)
      : name(part.name),
        kind(part.kind),
        socket(full_name(card, part) + extension_of(part.kind)),
        report_file(directory.path() / (part.name + ".report.json")) {
    std::vector<std::string> command = verb_of(part.kind);
    command.insert(command.end(), {"--json", report_file.string(), configuration.string()});
    std::vector<std::string> overrides = part.overrides;
    std::ranges::copy(names_for(part, parts, card, directory), std::back_inserter(overrides));
    process = std::make_unique<PartProcess>(PartProcess::Settings{.command = std::move(command),
                                                                  .overrides = std::move(overrides),
                                                                  .log = directory.path() / (part.name + ".log"),
                                                                  .there = [&] { return !status_of(socket).is_null(); },
                                                                  .lack = "no " + part.name});
  }

  Running(Running&&) = delete;

  bool ended() { return over_ = over_ || process->ended(); }
  /// Signals only once: a second signal may end it while it writes its report.
  void tell_to_stop() {
    if (!std::exchange(told, true) && !ended()) process->tell_to_stop();
  }
  Json report() const {
    const auto text = settings::read_text_file(report_file);
    const auto json = text ? Json::parse(*text) : std::unexpected(text.error());
    return json ? *json : Json();
  }

  std::string name;
  std::string kind;
  std::string socket;
  std::filesystem::path report_file;
  std::unique_ptr<PartProcess> process;
  bool told = false;

 private:
  bool over_ = false;
};

/// Removes sockets that killed processes of this demo left behind: a check for a listener removes a dead socket.
void remove_dead_sockets(const std::string& demo) {
  std::error_code error;
  std::vector<std::filesystem::path> left;
  for (std::filesystem::directory_iterator entry(base::runtime_directory_name(), error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_socket(ignored) && entry->path().filename().native().starts_with(demo)) left.push_back(entry->path());
  }
  for (const auto& path : left) (void)process::somebody_listens(path);
}

/// The chain from its first process to its last report. One thread.
class Chain {
 public:
  Chain(const DemoOptions& options, const DemoCard& card, const DemoDirectory& directory,
        const std::filesystem::path& configuration)
      : options_(options), card_(card), directory_(directory) {
    const std::vector<ChainPart> parts = chain_parts(options, card, directory);
    // Servers start before their clients. The supervisor starts last, because the trigger waits for it.
    for (const char* const kind : {"emulator", "router", "recorder", "readout", "node", "supervisor"}) {
      for (const ChainPart& part : parts) {
        if (part.kind == kind) running_.push_back(std::make_unique<Running>(part, parts, card, directory, configuration));
      }
    }
    for (const ChainPart& part : parts) order_.push_back(part.name);
    began_ = Clock::now();
  }

  /// Stops all remaining processes at once, before it waits for any. It kills processes that have not ended after an earlier
  /// stop.
  ~Chain() {
    for (const auto& one : running_) {
      if (one->told && !one->ended()) one->process->kill();
      one->tell_to_stop();
    }
  }
  Chain(const Chain&) = delete;

  /// Holds the trigger: all accepted triggers pass through the whole chain.
  void stop() {
    if (std::exchange(ending_, true)) return;
    (void)ask_emulator(card_.name + "-card", Json::object({{"command", "trigger_hold"}}));
    next_stage();
  }

  /// False: all is over.
  bool step(process::LiveView& view) {
    look(view);
    if (!ending_) {
      const double seconds = seconds_since(first_ ? *first_ : began_);
      if (first_ && seconds >= options_.seconds) stop();
      if (!first_ && seconds > kDataPatience) fail("no trigger came through the chain");
      for (const auto& one : running_) {
        if (one->ended()) fail(fmt::format("{} ended before the run: {}", one->name, one->process->last_said()));
      }
      return true;
    }
    const bool late = seconds_since(stage_began_) > (failure_.empty() ? kStagePatience : kFailedPatience);
    if (late && failure_.empty()) failure_ = fmt::format("the {} did not end within {:g} s", kEnds[stage_], kStagePatience);
    if (!failure_.empty() && seconds_since(stage_began_) > kOrderlyPatience && !std::exchange(pressed_, true)) {
      for (const auto& one : running_) {
        for (int more = 0; more < 2 && is_of_stage(*one) && !one->ended(); ++more) {
          one->process->tell_to_stop();
          std::this_thread::sleep_for(50ms);  // two signals at once would count as one
        }
      }
    }
    // The supervisor does not stop a node that was too slow to register with it, so stop it here. The other nodes have
    // finished: the supervisor ends only when all decisions are safe.
    if (kEnds[stage_] == "node" && seconds_since(stage_began_) > kOrderlyPatience) tell_stage_to_stop();
    if (late || std::ranges::all_of(running_, [&](auto& one) { return !is_of_stage(*one) || one->ended(); })) {
      // These processes end on a message of the previous stage. If that stage died, they wait for ever: report the failure.
      for (const auto& one : running_) {
        if (failure_.empty() && is_of_stage(*one) && one->report().is_null())
          failure_ = fmt::format("{} left no report: {}", one->name, one->process->last_said());
      }
      do {
        if (++stage_ == std::size(kEnds)) return false;
      } while (at_once(kEnds[stage_]));
      next_stage();
    }
    return true;
  }

  Json report() const {
    ChainRun run{.name = card_.name, .processes = {}, .decided = {}, .failure = failure_, .limited_by = limited_by()};
    for (const std::string& name : order_) {
      const auto& one = *std::ranges::find(running_, name, [](const auto& each) { return each->name; });
      run.processes.push_back({one->name, one->kind, one->report()});
    }
    if (auto decided = farm::read_decisions(directory_.path() / "decisions")) run.decided = *decided;
    return chain_report(run);
  }

 private:
  static constexpr double kDataPatience = 20;
  static constexpr double kStagePatience = 600;
  static constexpr double kFailedPatience = 8;
  static constexpr double kOrderlyPatience = 3;  // after this time processes get the order to stop waiting
  static constexpr double kLookEvery = 0.25;
  // The order of the end: accepted triggers are decided and cleared, links end, files are closed, the card ends.
  static constexpr std::string_view kEnds[] = {"supervisor", "router", "readout", "node", "recorder", "emulator"};

  static double seconds_since(Clock::time_point then) { return std::chrono::duration<double>(Clock::now() - then).count(); }

  /// After a failure all processes end at once, except the recorder and the card.
  bool at_once(std::string_view kind) const { return !failure_.empty() && kind != "recorder" && kind != "emulator"; }

  bool is_of_stage(const Running& one) const {
    return one.kind == kEnds[stage_] || (at_once(kEnds[stage_]) && at_once(one.kind));
  }

  void next_stage() {
    stage_began_ = Clock::now();
    pressed_ = false;
    // Readouts end after their links, and nodes when the supervisor ends the run.
    const bool by_itself = failure_.empty() && (kEnds[stage_] == "readout" || kEnds[stage_] == "node");
    if (!by_itself) tell_stage_to_stop();
  }

  void tell_stage_to_stop() {
    for (const auto& one : running_) {
      if (is_of_stage(*one)) one->tell_to_stop();
    }
  }

  void fail(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
    stop();
  }

  Json status(std::string_view kind) const {
    const auto one = std::ranges::find(running_, kind, [](const auto& each) { return each->kind; });
    return status_of((*one)->socket);
  }

  void look(process::LiveView& view) {
    if (seconds_since(looked_) < kLookEvery) return;
    looked_ = Clock::now();
    const Json card = status("emulator");
    const Json farm = status("supervisor");
    const Json& trigger = member(card, "trigger");
    const double accepted = member(trigger, "accepted").number();
    if (accepted > 0 && !first_) first_ = looked_;
    if (!first_ || farm.is_null() || card.is_null()) return;
    const double seconds = seconds_since(*first_);
    if (!ending_) {
      const std::string& limit = member(farm, "limited_by").string();
      if (!limit.empty() && limit != "nothing") ++limits_[limit];
    }
    const auto line = [&] {
      const double rate = seconds > shown_s_ ? (accepted - shown_accepted_) / (seconds - shown_s_) : 0;
      shown_s_ = seconds;
      shown_accepted_ = accepted;
      const auto events = [&](std::string_view key) { return member(member(farm, "events"), key).number(); };
      return fmt::format(
          "{}  triggers {}  dead time {:.2f} %  accepted {:.0f}  rejected {:.0f}  debug {:.0f}  under way {:.0f}",
          process::clock_text(seconds), base::format_quantity(rate, "Hz"),
          member(trigger, "dead_time_fraction").number() * 100, events("accepted"), events("rejected"), events("debug"),
          events("waiting") + events("assigned"));
    };
    (void)view.show(seconds, [&](process::ViewStyle) { return std::vector<std::string>{line()}; }, line);
  }

  /// The supervisor's most frequent `limited_by`.
  std::string limited_by() const {
    const auto most = std::ranges::max_element(limits_, {}, [](const auto& one) { return one.second; });
    return most == limits_.end() ? "" : most->first;
  }

  const DemoOptions& options_;
  const DemoCard& card_;
  const DemoDirectory& directory_;
  std::vector<std::unique_ptr<Running>> running_;
  std::vector<std::string> order_;  ///< in the order of the data path
  Clock::time_point began_;
  Clock::time_point looked_;
  Clock::time_point stage_began_;
  std::optional<Clock::time_point> first_;  ///< the first trigger was seen
  bool ending_ = false;
  bool pressed_ = false;
  std::size_t stage_ = 0;
  std::string failure_;
  std::map<std::string, int> limits_;
  double shown_s_ = 0;
  double shown_accepted_ = 0;
};

}  // namespace

Result<ExitCode> judge_chain(const DemoOptions& options, Json report) {
  std::vector<std::string> files;
  for (const Json& file : member(report, "files").elements()) files.push_back(file.string());
  FilesReadBack found = RODEO_TRY(read_back(files, member(member(report, "bytes"), "written").unsigned_integer()));
  report["files_verified"] = std::move(found.json);
  Json& condition = report["run"]["condition"];
  const bool holds = chain_sum_holds(report, found.events);
  if (condition.string() != "ABORTED" && (found.findings > 0 || !holds)) condition = "WRONG";
  say("{}", base::without_control_characters(chain_report_text(report)));
  std::fprintf(stderr, "%s\n", chain_sum_text(report, found.events).c_str());
  if (!options.json_file.empty()) RODEO_TRY(write_json(options.json_file, report));
  const Json& verified = member(report, "verified");
  if (member(verified, "chunks").number() == 0) std::fprintf(stderr, "no chunk was verified during the run\n");
  // In the same order as for a readout: failure of the run, wrong bytes, sums that do not hold.
  if (condition.string() == "ABORTED" || !member(member(report, "run"), "failure").string().empty()) return ExitCode::failed;
  if (member(verified, "mismatches").number() > 0 || found.findings > 0) return ExitCode::not_verified;
  if (condition.string() == "WRONG") return ExitCode::failed;
  if (!found.proved() || member(verified, "chunks").number() == 0) return ExitCode::not_verified;
  const Json& farm = member(report, "farm");
  const bool lost = member(farm, "readout_died").number() + member(farm, "undecided").number() > 0;
  return lost || member(member(report, "loss"), "exceeded").boolean() ? ExitCode::partial : ExitCode::done;
}

// The processes end one after the other, each within its own stop_limit.
constexpr std::chrono::minutes kChainStopLimit{3};

Result<ExitCode> run_chain(const DemoOptions& options, const DemoCard& card, const DemoDirectory& directory,
                           const std::filesystem::path& configuration) {
  Json report;
  {
    process::outlive_listeners();
    const process::StopSignals until_all_are_there;
    Chain chain(options, card, directory, configuration);
    process::LiveView view;
    process::run_in_order(
        {.start = [] {},
         .step = [&] { return chain.step(view); },
         .stop = [&] { chain.stop(); },
         .answer = {},
         .ending = "the trigger is held, accepted triggers are decided, readouts are cleared, files are closed",
         .aborted = "data not yet written are lost",
         .stop_limit = kChainStopLimit},
        view, nullptr);
    report = chain.report();
  }
  remove_dead_sockets(card.name);
  return judge_chain(options, std::move(report));
}

}  // namespace rodeo::cli
