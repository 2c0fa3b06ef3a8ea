#include "farm/supervisor/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/sentence.h"
#include "base/units.h"
#include "process/configuration.h"
#include "process/counters_json.h"
#include "process/prometheus.h"

namespace rodeo::farm {

using process::Condition;
using process::value_at;

namespace {

std::uint64_t decided(const SupervisorStatus& status) {
  return status["accepted"] + status["rejected"] + status["debug"] + status["readout_died"];
}
std::uint64_t entered(const SupervisorStatus& status) { return status["offered"] + status["adopted"]; }
std::uint64_t reassigned(const SupervisorStatus& status) {
  return status["timed_out"] + status["node_gone"] + status["undelivered"] + status["given_back"];
}

Json nodes_json(const SupervisorStatus& status) {
  Json out = Json::array();
  for (const SupervisedNode& node : status.nodes)
    out.push_back(Json::object({{"name", node.name},
                                {"connected", node.connected},
                                {"events", node.events},
                                {"room", node.room},
                                {"assigned", node.assigned},
                                {"decisions", node.decisions}}));
  return out;
}

Json readouts_json(const SupervisorStatus& status) {
  Json out = Json::array();
  for (const SupervisedReadout& readout : status.readouts)
    out.push_back(Json::object({{"name", readout.name},
                                {"connected", readout.connected},
                                {"lives", readout.lives},
                                {"ended", readout.ended},
                                {"clears_behind", readout.behind},
                                {"trouble", readout.trouble}}));
  return out;
}

Json trigger_json(const SupervisorStatus& status) {
  if (!status.trigger) return {};
  const auto& link = *status.trigger->link;
  return Json::object({{"follows", link.address},
                       {"authority", link.authority},
                       {"connected", link.connected},
                       {"connections", link.connections},
                       {"received", status.trigger->accepted},
                       {"why", link.why}});
}

std::string report_text(const Json& report) {
  const auto number = [&](std::string_view group, std::string_view key) { return value_at(report, group, key).number(); };
  const auto events = [&](std::string_view key) { return number("events", key); };
  std::string out = fmt::format("{}: run {:.0f} of {} took {:.1f} s\n", value_at(report, "run", "condition").string(),
                                number("run", "number"), value_at(report, "run", "name").string(), number("run", "seconds"));
  out += fmt::format(
      "  events      {:.0f} in = {:.0f} accepted + {:.0f} rejected + {:.0f} debug + {:.0f} readout_died + {:.0f} "
      "undecided{}\n",
      events("in"), events("accepted"), events("rejected"), events("debug"), events("readout_died"),
      events("waiting") + events("assigned"),
      value_at(report, "events", "adds_up").boolean() ? "" : "   THIS DOES NOT ADD UP");
  out += fmt::format("  of these    {:.0f} partial; {:.0f} times assigned again", events("partial"), events("reassigned"));
  if (events("uncleared") > 0) out += fmt::format("; {:.0f} NOT CLEARED by all readouts", events("uncleared"));
  if (const double outside = events("before_common_start") + events("after_common_end"); outside > 0)
    out += fmt::format("; {:.0f} more that not all readouts could have", outside);
  if (events("held_untold") > 0) out += fmt::format("; {:.0f} MORE HELD by readouts", events("held_untold"));
  out += fmt::format("\n  CPU         supervisor {:.1f} s\n", number("cpu_seconds", "supervisor"));
  if (const Json* limited = report.find("limited_by")) out += fmt::format("  limited by  {}\n", limited->string());
  if (const Json* trouble = report.find("trouble"); trouble != nullptr && !trouble->string().empty())
    out += fmt::format("  at the end  {}\n", trouble->string());
  return out;
}

/// Text format 0.0.4. Names and labels: docs/reference/metrics.md.
std::string prometheus_text(const SupervisorStatus& status) {
  process::PrometheusText out;
  out.counters("rodeo_supervisor_", "", dispatch::kDispatchCounters, status.counters);
  out.counters("rodeo_supervisor_", "", kEventsCounters, status.counters);
  out.counters("rodeo_supervisor_", "", kNodesCounters, status.counters);
  out.counters("rodeo_supervisor_", "", kReadoutsCounters, status.counters);
  out.counters("rodeo_supervisor_", "", kOrphansCounters, status.counters);
  out.counters("rodeo_supervisor_", "network_", transport::kReplierCounters, status.counters);
  out.gauge("rodeo_supervisor_run_number", "Run that is supervised; 0: none yet.", status.run_number);
  out.gauge("rodeo_supervisor_events_waiting", "Events that wait for a node.", status.waiting);
  out.gauge("rodeo_supervisor_events_assigned", "Events that nodes have.", status.assigned);
  out.gauge("rodeo_supervisor_events_uncleared", "Decided events that some readout has not cleared.", status.uncleared);
  out.gauge("rodeo_supervisor_events_held_untold",
            "Events that readouts hold, that no trigger announced, and that have not entered yet.", status.orphans);
  out.gauge("rodeo_supervisor_room", "Events that it has room for, before the trigger is busy.", status.room);
  out.gauge("rodeo_supervisor_lumi_block", "Luminosity block of the newest event.", status.lumi_block);
  out.gauge("rodeo_supervisor_scan_step", "Scan step of the newest event.", status.scan_step);
  const auto here = [](const auto& all) {
    return std::ranges::count_if(all, [](const auto& one) { return one.connected; });
  };
  out.gauge("rodeo_supervisor_connected_nodes", "Filter nodes that are connected.", here(status.nodes));
  out.gauge("rodeo_supervisor_trigger_connected", "1 while the trigger authority is there, or none is needed.",
            !status.trigger || status.trigger->link->connected ? 1 : 0);
  out.gauge("rodeo_supervisor_books_add_up", "1: each event that came in is waiting, assigned or decided once.",
            status.adds_up ? 1 : 0);
  const auto readouts = [&](std::string_view name, std::string_view help, auto value) {
    out.metric(fmt::format("rodeo_supervisor_readout_{}", name), "gauge", help);
    for (const SupervisedReadout& readout : status.readouts) out.sample(value(readout), {{"readout", readout.name}});
  };
  readouts("connected", "1 while the readout is connected.",
           [](const SupervisedReadout& one) { return one.connected ? 1 : 0; });
  readouts("lives", "0: away or silent for so long that nothing waits for it.",
           [](const SupervisedReadout& one) { return one.lives ? 1 : 0; });
  readouts("clears_behind", "Batches of clears that the readout has not answered.",
           [](const SupervisedReadout& one) { return one.behind; });
  out.metric("rodeo_supervisor_cpu_seconds_total", "counter", "CPU time of the supervisor's thread.");
  out.sample(status.cpu_seconds);
  return out.take();
}

}  // namespace

std::vector<process::WatchedPart> watched_parts(const SupervisorStatus& status) {
  std::vector<process::WatchedPart> parts;
  std::uint64_t assigned = 0;
  bool some_node = false;
  for (const SupervisedNode& node : status.nodes) {
    assigned += node.assigned;
    some_node = some_node || node.connected;
    if (node.events == 0) continue;
    parts.push_back({fmt::format("events at node {}", node.name),
                     node.connected ? "its decisions" : "the node, which is not connected", node.decisions});
  }
  if (status.waiting > 0)
    parts.push_back({"events without a node", some_node ? "room at a filter node" : "a filter node", assigned});
  for (const SupervisedReadout& readout : status.readouts) {
    if (readout.behind == 0 || !readout.lives) continue;
    parts.push_back({fmt::format("clears for readout {}", readout.name),
                     readout.connected ? "its answer" : "the readout, which is not connected", readout.answered});
  }
  return parts;
}

SupervisorService::SupervisorService(const SupervisorConfiguration& configuration)
    : Service(
          facts_of(process::kSupervisor, configuration, "the trigger is held, events under way are decided and cleared")),
      settings_(configuration.settings),
      run_number_(settings_.run_number) {}

void SupervisorService::prepare() {
  supervisor_ = std::make_unique<Supervisor>(settings_);
  const process::EndTime drain{"farm.supervisor.drain_time", settings_.drain_time};
  for (const std::string& warning : process::cut_by_stop_limit(std::span(&drain, 1), settings_.stop_limit))
    base::log_warning("{}", warning);
}

void SupervisorService::start() {
  supervisor_->start(run_number_);
  phase_ = Phase::running;
}

void SupervisorService::stop() {
  supervisor_->stop();
  if (phase_ < Phase::draining) phase_ = Phase::draining;
}

void SupervisorService::step() {
  const bool over = supervisor_->over();
  if (const auto refused = supervisor_->refused()) throw SetupError(*refused);
  shown_ = supervisor_->status();
  if (shown_.stage > Stage::running && phase_ == Phase::running) phase_ = Phase::draining;
  if (over) phase_ = Phase::stopped;
}

Condition SupervisorService::condition() const {
  if (!shown_.adds_up) return Condition::wrong;
  if (phase_ != Phase::stopped) return Condition::good;
  const bool lost = shown_["readout_died"] + shown_.undecided + shown_.uncleared + shown_["partial"] > 0;
  return lost || !shown_.trouble.empty() ? Condition::incomplete : Condition::good;
}

Json SupervisorService::report() const {
  return Json::object({{"run", Json::object({{"name", settings_.name},
                                             {"number", shown_.run_number},
                                             {"seconds", shown_.seconds},
                                             {"condition", process::name_of(condition())}})},
                       {"stage", stage_name(shown_.stage)},
                       {"events", Json::object({{"in", entered(shown_)},
                                                {"accepted", shown_["accepted"]},
                                                {"rejected", shown_["rejected"]},
                                                {"debug", shown_["debug"]},
                                                {"readout_died", shown_["readout_died"]},
                                                {"partial", shown_["partial"]},
                                                {"waiting", shown_.waiting},
                                                {"assigned", shown_.assigned},
                                                {"undecided", shown_.undecided},
                                                {"uncleared", shown_.uncleared},
                                                {"held_untold", shown_.orphans},
                                                {"before_common_start", shown_["before_common_start"]},
                                                {"after_common_end", shown_["after_common_end"]},
                                                {"reassigned", reassigned(shown_)},
                                                {"adds_up", shown_.adds_up}})},
                       {"lumi_block", shown_.lumi_block},
                       {"scan_step", shown_.scan_step},
                       {"room", shown_.room},
                       {"limited_by", shown_.limited_by()},
                       {"trigger", trigger_json(shown_)},
                       {"nodes", nodes_json(shown_)},
                       {"readouts", readouts_json(shown_)},
                       {"trouble", shown_.trouble},
                       {"counters", process::counters_json(shown_.counters)},
                       {"cpu_seconds", Json::object({{"supervisor", shown_.cpu_seconds}})}});
}

Json SupervisorService::status(const Json&) {
  Json status = report();
  status["phase"] = process::life_phase(phase_);
  return status;
}

process::Service::Report SupervisorService::conclude(bool) {
  using process::ExitCode;
  Json json = report();
  std::string text = report_text(json);
  const bool lost = shown_["readout_died"] + shown_.undecided + shown_.uncleared > 0;
  return {std::move(json), std::move(text),
          condition() == Condition::wrong ? ExitCode::failed
          : lost                          ? ExitCode::partial
                                          : ExitCode::done};
}

std::function<std::string()> SupervisorService::metrics() const {
  return [status = shown_] { return prometheus_text(status); };
}

std::vector<std::string> SupervisorService::view_lines(double seconds, process::ViewStyle style) {
  const process::Painter paint(style);
  const SupervisorStatus before = std::exchange(viewed_, shown_);
  const double span = seconds - std::exchange(viewed_s_, seconds);
  const auto rate = [&](std::uint64_t then, std::uint64_t now) {
    return base::format_quantity(span > 0 && now >= then ? static_cast<double>(now - then) / span : 0, "/s");
  };
  const SupervisorStatus& now = shown_;
  std::vector<std::string> lines;
  const auto add = [&](const std::string& head, const std::vector<std::string>& parts) {
    process::add_line(lines, head, parts, style.columns);
  };
  add(fmt::format("{}  run {}  {} {}", paint.bold("rodeo " + settings_.name), now.run_number, stage_name(now.stage),
                  process::clock_text(seconds)),
      {paint.dim(phase_ == Phase::running ? "   Ctrl-C ends it in order" : "")});
  add(fmt::format("  events     {:>12}", rate(entered(before), entered(now))),
      {fmt::format("   decided {}", decided(now)), fmt::format("   accepted {}", now["accepted"]),
       fmt::format("   rejected {}", now["rejected"]), fmt::format("   debug {}", now["debug"]),
       fmt::format("   partial {}", now["partial"])});
  add(fmt::format("  under way  {:>12}", now.waiting + now.assigned + now.uncleared),
      {fmt::format("   wait {}", now.waiting), fmt::format("   at nodes {}", now.assigned),
       fmt::format("   to clear {}", now.uncleared), fmt::format("   room {}", now.room)});
  const auto here = [](const auto& all) {
    return std::ranges::count_if(all, [](const auto& one) { return one.connected; });
  };
  add(fmt::format("  nodes      {:>12}", here(now.nodes)),
      {fmt::format("   readouts {} of {}", here(now.readouts), now.readouts.size()),
       reassigned(now) > 0 ? paint.warn(fmt::format("   assigned again {}", reassigned(now))) : "",
       now["readout_died"] > 0 ? paint.bad(fmt::format("   readout_died {}", now["readout_died"])) : ""});
  if (now.trigger && !now.trigger->link->connected)
    lines.push_back("  " + paint.bad("no trigger authority: " + now.trigger->link->why));
  for (const SupervisedReadout& readout : now.readouts) {
    if (!readout.connected)
      lines.push_back("  " + paint.bad(fmt::format("readout {} is away: {}", readout.name, readout.trouble)));
    if (lines.size() > 12) break;
  }
  if (!now.trouble.empty()) lines.push_back("  " + paint.bad(now.trouble));
  lines.push_back("  limited by " + now.limited_by());
  return lines;
}

std::string SupervisorService::view_line(double seconds) {
  const SupervisorStatus before = std::exchange(viewed_, shown_);
  const double span = seconds - std::exchange(viewed_s_, seconds);
  const std::uint64_t more = entered(shown_) - std::min(entered(shown_), entered(before));
  return fmt::format("{}  events {}  accepted {}  rejected {}  debug {}  wait {}  at nodes {}  to clear {}  again {}",
                     process::clock_text(seconds),
                     base::format_quantity(span > 0 ? static_cast<double>(more) / span : 0, "/s"), shown_["accepted"],
                     shown_["rejected"], shown_["debug"], shown_.waiting, shown_.assigned, shown_.uncleared,
                     reassigned(shown_));
}

}  // namespace rodeo::farm
