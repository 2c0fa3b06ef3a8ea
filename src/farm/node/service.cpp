#include "farm/node/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/named_counters.h"
#include "base/sentence.h"
#include "base/units.h"
#include "process/counters_json.h"
#include "process/prometheus.h"

namespace rodeo::farm {

using process::Condition;
using process::value_at;

namespace {

double microseconds(std::uint64_t ns) { return static_cast<double>(ns) * 1e-3; }

Json recorders_json(const std::vector<NodeStatus::Peer>& recorders) {
  Json list = Json::array();
  for (const NodeStatus::Peer& one : recorders)
    list.push_back(Json::object({{"name", one.name}, {"connected", one.connected}, {"trouble", one.trouble}}));
  return list;
}

Json readouts_json(const std::vector<NodeStatus::Peer>& readouts) {
  Json list = Json::array();
  for (const NodeStatus::Peer& one : readouts)
    list.push_back(Json::object({{"name", one.name},
                                 {"connected", one.connected},
                                 {"trouble", one.trouble},
                                 {"lost_fragments", one.lost_fragments}}));
  return list;
}

std::uint64_t decided(const NodeStatus& status) {
  return status["accepted"] + status["rejected"] + status["debug"] + status["lost"];
}

std::size_t connected(const std::vector<NodeStatus::Peer>& peers) {
  std::size_t count = 0;
  for (const NodeStatus::Peer& peer : peers) count += peer.connected ? 1 : 0;
  return count;
}

std::string report_text(const Json& report) {
  const auto number = [&](std::string_view group, std::string_view key) { return value_at(report, group, key).number(); };
  std::string out = fmt::format("{}: run {:.0f} of {} took {:.1f} s\n", value_at(report, "run", "condition").string(),
                                number("run", "number"), value_at(report, "run", "name").string(), number("run", "seconds"));
  if (const Json* failure = report.find("failure"); failure != nullptr && !failure->string().empty())
    out += fmt::format("  {}\n", failure->string());
  out += fmt::format(
      "  {:.0f} events assigned: {:.0f} accepted, {:.0f} rejected, {:.0f} debug, {:.0f} lost; {:.0f} were partial\n",
      number("events", "assigned"), number("events", "accepted"), number("events", "rejected"), number("events", "debug"),
      number("events", "lost"), number("events", "partial"));
  if (number("events", "given_up") + number("events", "let_go") > 0)
    out += fmt::format("  {:.0f} given up, {:.0f} let go: other nodes have them\n", number("events", "given_up"),
                       number("events", "let_go"));
  if (number("events", "under_way") + number("events", "unsafe") > 0)
    out += fmt::format("  {:.0f} under way and {:.0f} decisions not safe at the end\n", number("events", "under_way"),
                       number("events", "unsafe"));
  out += fmt::format("  from the first request for an event to its last fragment p50 {:.0f} us, p99 {:.0f} us\n",
                     number("latency_us", "collecting_p50"), number("latency_us", "collecting_p99"));
  out += fmt::format("  {} of fragments, {} recorded; from assignment to decision p50 {:.0f} us, p99 {:.0f} us\n",
                     base::format_quantity(number("bytes", "fragments"), "B"),
                     base::format_quantity(number("bytes", "recorded"), "B"), number("latency_us", "deciding_p50"),
                     number("latency_us", "deciding_p99"));
  if (number("slots", "hanging") > 0)
    out += fmt::format("  {:.0f} selections did not come back\n", number("slots", "hanging"));
  return out;
}

/// Text format 0.0.4. Names and labels: docs/reference/metrics.md.
std::string prometheus_text(const NodeStatus& status) {
  process::PrometheusText out;
  out.counters("rodeo_node_", "", kNodeCounters, status.counters);
  out.counters("rodeo_node_", "", kCollectorCounters, status.counters);
  out.counters("rodeo_node_", "", kDataCounters, status.counters);
  out.counters("rodeo_node_", "network_", transport::kRequesterCounters, status.counters);
  out.gauge("rodeo_node_run_number", "Run that the supervisor has; 0: none yet.", status.run_number);
  out.gauge("rodeo_node_connected", "1 while the supervisor knows the node.", status.connected ? 1 : 0);
  out.gauge("rodeo_node_slots_used", "Events that it has.", status.slots_used);
  out.gauge("rodeo_node_fetching", "Of these, events whose fragments are fetched.", status.fetching);
  out.gauge("rodeo_node_selecting", "Of these, events that are selected.", status.selecting);
  out.gauge("rodeo_node_selections_hanging", "Threads that are at one event for longer than event_timeout.", status.hanging);
  out.gauge("rodeo_node_selecting_longest_seconds", "How long the selection has been at one event.",
            microseconds(status.selecting_longest_ns) * 1e-6);
  out.gauge("rodeo_node_recording", "Of these, events that a recorder has still to acknowledge.", status.recording);
  out.gauge("rodeo_node_unsafe_decisions", "Decisions that are kept because they are not safe yet.",
            status.unsafe_decisions);
  out.gauge("rodeo_node_fragments_under_way", "Fragments that are asked for.", status.fragments_under_way);
  out.gauge("rodeo_node_bytes_under_way", "Their bytes, estimated from recent fragments.", status.bytes_under_way);
  out.gauge("rodeo_node_readouts_connected", "Readouts that it is connected to.", connected(status.readouts));
  out.metric("rodeo_node_readout_lost_fragments_total", "counter", "Fragments of a readout that events lack.");
  for (const NodeStatus::Peer& one : status.readouts) out.sample(one.lost_fragments, {{"readout", one.name}});
  out.gauge("rodeo_node_recorders_connected", "Recorders that it is connected to.", connected(status.recorders));
  out.gauge("rodeo_node_collecting_p50_seconds",
            "Median of the time from the first request for fragments of an event to the last of them.",
            microseconds(status.collecting_p50_ns) * 1e-6);
  out.gauge("rodeo_node_collecting_p99_seconds", "99th percentile of that time.",
            microseconds(status.collecting_p99_ns) * 1e-6);
  out.gauge("rodeo_node_building_p50_seconds",
            "Median of the time from assignment to all fragments, waiting for credit included.",
            microseconds(status.building_p50_ns) * 1e-6);
  out.gauge("rodeo_node_building_p99_seconds", "99th percentile of that time.", microseconds(status.building_p99_ns) * 1e-6);
  out.gauge("rodeo_node_deciding_p50_seconds", "Median of the time from assignment to decision.",
            microseconds(status.deciding_p50_ns) * 1e-6);
  out.gauge("rodeo_node_deciding_p99_seconds", "99th percentile of that time.", microseconds(status.deciding_p99_ns) * 1e-6);
  out.metric("rodeo_node_cpu_seconds_total", "counter",
             "CPU time of the thread that fetches and builds, and of those that select.");
  out.sample(status.cpu_seconds, {{"thread", "node"}});
  out.sample(status.selection_cpu_seconds, {{"thread", "selection"}});
  return out.take();
}

}  // namespace

NodeService::NodeService(const NodeConfiguration& configuration, const base::ComponentRegistry& registry)
    : Service(facts_of(process::kNode, configuration, "its events are finished, new ones are refused")),
      settings_(configuration.settings),
      registry_(registry) {}

NodeService::~NodeService() {
  // A selection that hangs still reads an event of the node: both stay until the process has gone.
  if (node_ && node_->ended() && node_->status().hanging > 0) static_cast<void>(node_.release());
}

void NodeService::prepare() {
  node_ = std::make_unique<FilterNode>(settings_, [this] {
    auto made = registry_.make_selection(settings_.selection.type, settings_.selection.parameters);
    if (made) return std::move(*made);
    Error error = made.error();
    if (error.where.empty()) error.where = settings_.selection.where;
    throw SetupError(error);
  });
}

void NodeService::start() {
  node_->start(run_number_);
  began_ns_ = base::steady_now_ns();
  phase_ = Phase::running;
}

void NodeService::stop() {
  if (phase_ == Phase::stopped || phase_ == Phase::draining) return;
  node_->end();
  phase_ = Phase::draining;
}

void NodeService::step() {
  shown_ = node_->status();
  if (!node_->ended() || phase_ == Phase::stopped) return;
  shown_ = node_->status();
  ended_ns_ = base::steady_now_ns();
  phase_ = Phase::stopped;
}

std::vector<process::WatchedPart> watched_parts(const NodeStatus& status) {
  const auto away = [](const std::vector<NodeStatus::Peer>& peers, const char* what) {
    const auto peer = std::ranges::find(peers, false, &NodeStatus::Peer::connected);
    return peer == peers.end() ? std::string() : fmt::format("{} {}, which is not connected", what, peer->name);
  };
  const auto sum = [&](std::initializer_list<const char*> counters) {
    std::uint64_t all = 0;
    for (const char* counter : counters) all += status[counter];
    return all;
  };
  const std::uint64_t decided = sum({"accepted", "rejected", "debug", "lost"});
  std::vector<process::WatchedPart> parts;
  if (status.fetching > 0) {
    const std::string readout = away(status.readouts, "readout");
    parts.push_back({"events that are built", readout.empty() ? "fragments" : readout,
                     decided + status.selecting + status.recording + sum({"given_up", "let_go", "given_back"})});
  }
  if (status.selecting > 0) parts.push_back({"events at the selection", "its verdict", decided + status.recording});
  if (status.recording > 0) {
    const std::string recorder = away(status.recorders, "recorder");
    parts.push_back({"accepted events", recorder.empty() ? "a recorder's answer" : recorder, status["recorded_bytes"]});
  }
  if (status.unsafe_decisions > 0)
    parts.push_back({"decisions",
                     status.connected ? "readouts to clear their events" : "the supervisor, which is not connected",
                     decided - std::min(decided, status.unsafe_decisions)});
  return parts;
}

Condition NodeService::condition() const {
  if (!shown_.failure.empty()) return Condition::aborted;
  const bool left = phase_ == Phase::stopped && (shown_.slots_used > 0 || shown_.unsafe_decisions > 0);
  return left || shown_["given_up"] > 0 || shown_["lost"] > 0 ? Condition::incomplete : Condition::good;
}

Json NodeService::report() const {
  const std::uint64_t until = ended_ns_ != 0 ? ended_ns_ : base::steady_now_ns();
  const double seconds = began_ns_ == 0 ? 0 : static_cast<double>(until - began_ns_) * 1e-9;
  return Json::object(
      {{"run", Json::object({{"name", settings_.name},
                             {"number", shown_.run_number},
                             {"system", shown_.system},
                             {"seconds", seconds},
                             {"condition", process::name_of(condition())}})},
       {"failure", shown_.failure},
       {"supervisor", Json::object({{"name", settings_.supervisor},
                                    {"connected", shown_.connected},
                                    {"trouble", shown_.supervisor_trouble},
                                    {"over", shown_.over}})},
       {"events", Json::object({{"assigned", shown_["assigned"]},
                                {"accepted", shown_["accepted"]},
                                {"rejected", shown_["rejected"]},
                                {"debug", shown_["debug"]},
                                {"lost", shown_["lost"]},
                                {"partial", shown_["partial"]},
                                {"build_only", shown_["build_only"]},
                                {"given_up", shown_["given_up"]},
                                {"let_go", shown_["let_go"]},
                                {"given_back", shown_["given_back"]},
                                {"under_way", shown_.slots_used},
                                {"unsafe", shown_.unsafe_decisions}})},
       {"bytes", Json::object({{"fragments", shown_["fragment_bytes"]}, {"recorded", shown_["recorded_bytes"]}})},
       {"slots", Json::object({{"events", settings_.slots},
                               {"fetching", shown_.fetching},
                               {"selecting", shown_.selecting},
                               {"hanging", shown_.hanging},
                               {"recording", shown_.recording}})},
       {"latency_us", Json::object({{"collecting_p50", microseconds(shown_.collecting_p50_ns)},
                                    {"collecting_p99", microseconds(shown_.collecting_p99_ns)},
                                    {"building_p50", microseconds(shown_.building_p50_ns)},
                                    {"building_p99", microseconds(shown_.building_p99_ns)},
                                    {"deciding_p50", microseconds(shown_.deciding_p50_ns)},
                                    {"deciding_p99", microseconds(shown_.deciding_p99_ns)}})},
       {"readouts", readouts_json(shown_.readouts)},
       {"recorders", recorders_json(shown_.recorders)},
       {"counters", process::counters_json(shown_.counters)},
       {"cpu_seconds", Json::object({{"node", shown_.cpu_seconds}, {"selection", shown_.selection_cpu_seconds}})}});
}

Json NodeService::status(const Json&) {
  Json status = report();
  status["phase"] = process::life_phase(phase_);
  return status;
}

process::Service::Report NodeService::conclude(bool) {
  using process::ExitCode;
  Json json = report();
  std::string text = report_text(json);
  const Condition now = condition();
  return {std::move(json), std::move(text),
          now == Condition::good      ? ExitCode::done
          : now == Condition::aborted ? ExitCode::failed
                                      : ExitCode::partial};
}

std::function<std::string()> NodeService::metrics() const {
  return [status = shown_] { return prometheus_text(status); };
}

std::vector<std::string> NodeService::view_lines(double seconds, process::ViewStyle style) {
  const process::Painter paint(style);
  const NodeStatus now = shown_;
  const NodeStatus before = std::exchange(viewed_, now);
  const double span = seconds - std::exchange(viewed_s_, seconds);
  const auto rate = [&](std::uint64_t then, std::uint64_t value, std::string_view unit) {
    return base::format_quantity(span > 0 ? static_cast<double>(value - then) / span : 0, unit);
  };
  std::vector<std::string> lines;
  const auto add = [&](const std::string& head, const std::vector<std::string>& parts) {
    process::add_line(lines, head, parts, style.columns);
  };
  add(fmt::format("{}  {}  {} {}", paint.bold("rodeo " + settings_.name),
                  now.connected ? fmt::format("run {}", now.run_number) : paint.warn("looks for " + settings_.supervisor),
                  process::phase_name(phase_), process::clock_text(seconds)),
      {paint.dim(phase_ == Phase::running ? "   Ctrl-C ends it in order" : "")});
  add(fmt::format("  events     {:>12}", rate(decided(before), decided(now), "/s")),
      {fmt::format("   accepted {}", now["accepted"]), fmt::format("   rejected {}", now["rejected"]),
       fmt::format("   debug {}", now["debug"]), fmt::format("   partial {}", now["partial"])});
  add(fmt::format("  fragments  {:>12}", rate(before["fragments"], now["fragments"], "/s")),
      {"   " + rate(before["fragment_bytes"], now["fragment_bytes"], "B/s"),
       fmt::format("   readouts {} of {}", connected(now.readouts), now.readouts.size())});
  add(fmt::format("  slots      {:>5} of {:>3}", now.slots_used, settings_.slots),
      {fmt::format("   fetching {}", now.fetching), fmt::format("   selecting {}", now.selecting),
       fmt::format("   recording {}", now.recording)});
  if (!now.supervisor_trouble.empty()) lines.push_back("  " + paint.warn(now.supervisor_trouble));
  return lines;
}

std::string NodeService::view_line(double seconds) {
  const NodeStatus now = shown_;
  const NodeStatus before = std::exchange(viewed_, now);
  const double span = seconds - std::exchange(viewed_s_, seconds);
  const double rate = span > 0 ? static_cast<double>(decided(now) - decided(before)) / span : 0;
  return fmt::format("{}  events {}  accepted {}  rejected {}  debug {}  partial {}  slots {} of {}{}",
                     process::clock_text(seconds), base::format_quantity(rate, "/s"), now["accepted"], now["rejected"],
                     now["debug"], now["partial"], now.slots_used, settings_.slots,
                     now.connected ? "" : "  looks for " + settings_.supervisor);
}

}  // namespace rodeo::farm
