#include "network/laboratory/laboratory.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <thread>

#include "base/clock.h"
#include "network/laboratory/leftovers.h"
#include "network/laboratory/run_order.h"
#include "network/laboratory/sockets.h"
#include "network/scenario_settings.h"

namespace rodeo::network::laboratory {

namespace {

using std::chrono::milliseconds;

constexpr int kClockQuestions = 16;
constexpr std::chrono::seconds kPatience{20};           // time limit for an agent that answers at once
constexpr std::chrono::seconds kPatienceWithLoad{120};  // time limit with a load, which starts and ends programs
constexpr double kHeadStart = 0.15;                     // seconds from the order to the first request

double unix_now() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double percentile(std::vector<std::uint64_t>& values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::size_t>(std::lround(share * static_cast<double>(values.size() - 1)));
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(at));
  return static_cast<double>(values[at]);
}

/// Waits in steps, so that Ctrl-C ends the wait.
Result<void> wait_until(std::uint64_t at_ns, const Stop& stop) {
  for (std::uint64_t now = base::steady_now_ns(); now < at_ns; now = base::steady_now_ns()) {
    if (stop && stop()) return std::unexpected(Error{"network.interrupted", "the run was interrupted"});
    std::this_thread::sleep_for(
        std::min(std::chrono::nanoseconds(at_ns - now), std::chrono::nanoseconds(milliseconds(100))));
  }
  return {};
}

double drain_seconds_of(const Settings& settings) {  // two time-outs in a row, and the time to empty the queues
  return 1 + 2e-9 * static_cast<double>(settings.tcp.rto_min_ns);
}

/// The counts since `before`; values that are not counts are the present ones.
SwitchCounters since(const SwitchCounters& before, SwitchCounters now) {
  now.drops -= std::min(before.drops, now.drops);
  if (now.reasons && before.reasons) {
    now.reasons->pool_full -= before.reasons->pool_full;
    now.reasons->threshold -= before.reasons->threshold;
    now.reasons->port_limit -= before.reasons->port_limit;
  }
  for (std::size_t i = 0; i < std::min(now.ports.size(), before.ports.size()); ++i)
    now.ports[i].drops -= std::min(before.ports[i].drops, now.ports[i].drops);
  return now;
}

}  // namespace

Result<std::unique_ptr<Laboratory>> Laboratory::in_namespaces(const Settings& settings,
                                                              const std::vector<std::string>& agent, const Stop& stop) {
  end_leftovers();
  std::unique_ptr<Laboratory> laboratory(new Laboratory);
  laboratory->network_ = RODEO_TRY(KernelNetwork::make(settings));
  const KernelNetwork& network = *laboratory->network_;
  laboratory->driver_ = laboratory->network_.get();
  for (const bool is_readout : {true, false}) {
    const std::uint32_t count = is_readout ? settings.topology.readouts : settings.topology.nodes;
    for (std::uint32_t i = 0; i < count; ++i)
      RODEO_TRY(laboratory->add({.is_readout = is_readout, .address = KernelNetwork::address(is_readout, i), .command = {}},
                                agent, (is_readout ? network.readout(i) : network.node(i)).fd()));
  }
  RODEO_TRY(laboratory->begin(settings, stop));
  return laboratory;
}

Result<std::unique_ptr<Laboratory>> Laboratory::on_hosts(const Settings& settings, const std::vector<Host>& hosts,
                                                         const std::vector<std::string>& agent, SwitchDriver* driver,
                                                         const Stop& stop) {
  end_leftovers();
  std::unique_ptr<Laboratory> laboratory(new Laboratory);
  laboratory->driver_ = driver;
  for (const Host& host : hosts) RODEO_TRY(laboratory->add(host, agent, -1));
  RODEO_TRY(laboratory->begin(settings, stop));
  return laboratory;
}

Result<void> Laboratory::add(const Host& host, const std::vector<std::string>& agent, int network_namespace) {
  std::vector<std::string> command = host.command;
  command.insert(command.end(), agent.begin(), agent.end());
  auto started = RODEO_TRY(LineProcess::start(fmt::format("{} {}", host.is_readout ? "readout" : "node", host.address),
                                              "network.agent", command, network_namespace));
  (host.is_readout ? readouts_ : nodes_).push_back(std::move(started));
  if (host.is_readout) addresses_.push_back(host.address);
  return {};
}

Result<void> Laboratory::begin(const Settings& settings, const Stop& stop) {
  for (auto* agents : {&readouts_, &nodes_}) {
    for (LineProcess& agent : *agents) {
      const Json answer = RODEO_TRY(agent.ask(Json::object({{"do", "hello"}}), kPatience, stop));
      if (member_of(answer, "version").unsigned_integer() != kAgentVersion)
        return std::unexpected(Error{"network.agent", "the agent is of another version of rodeo", agent.name(),
                                     "install the same version on all hosts"});
    }
  }
  for (std::size_t i = 0; i < readouts_.size(); ++i) {
    const Json answer = RODEO_TRY(readouts_[i].ask(
        Json::object({{"do", "readout"}, {"address", addresses_[i]}, {"port", 0}, {"tcp", settings.congestion_control}}),
        kPatience, stop));
    endpoints_.push_back(fmt::format("{}:{}", addresses_[i], member_of(answer, "port").unsigned_integer()));
  }
  return compare_clocks(stop);
}

/// All nodes start at one time of this process's clock. So each node reports its clock several times; the fastest answer has
/// the smallest error.
Result<void> Laboratory::compare_clocks(const Stop& stop) {
  clock_offsets_ns_.assign(nodes_.size(), 0);
  if (network_) return {};  // all nodes are in one kernel, with one clock
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    std::uint64_t quickest = std::numeric_limits<std::uint64_t>::max();
    for (int question = 0; question < kClockQuestions; ++question) {
      const std::uint64_t before = base::steady_now_ns();
      const Json answer = RODEO_TRY(nodes_[i].ask(Json::object({{"do", "clock"}}), kPatience, stop));
      const std::uint64_t took = base::steady_now_ns() - before;
      if (took >= quickest) continue;
      quickest = took;
      clock_offsets_ns_[i] = member_of(answer, "ns").signed_integer() - static_cast<std::int64_t>(before + took / 2);
    }
    clock_error_seconds_ = std::max(clock_error_seconds_, static_cast<double>(quickest) * 0.5e-9);
  }
  return {};
}

Result<Point> Laboratory::measure(const Settings& settings, const VetoRule& rule, const Stop& stop,
                                  const Progress& progress) {
  return repeat(settings, [&] { return run_once(settings, stop); }, rule, progress);
}

Result<Point> Laboratory::measure(const Settings& settings, LineProcess& load, const VetoRule& rule, const Stop& stop,
                                  const Progress& progress) {
  if (!network_) return std::unexpected(Error{"network.unsupported", "a load of your own needs namespaces", "", ""});
  return repeat(settings, [&] { return run_load(settings, load, stop); }, rule, progress);
}

Result<Point> Laboratory::repeat(const Settings& settings, const std::function<Result<Run>()>& once, const VetoRule& rule,
                                 const Progress& progress) {
  RODEO_TRY(check(settings));
  if (settings.topology.readouts != readouts_.size() || settings.topology.nodes != nodes_.size())
    return std::unexpected(Error{"network.unsupported", "the laboratory has another number of hosts", "", ""});
  if (driver_ != nullptr) RODEO_TRY(driver_->set_buffer(settings.buffer));
  Point point;
  for (unsigned in_a_row = 0; point.runs.size() < settings.repeats;) {
    auto run = once();
    if (!run && run.error().code == "network.interrupted" && !(point.runs.empty() && point.vetoed.empty())) {
      point.interrupted = true;
      break;
    }
    if (!run) return std::unexpected(run.error());
    run->veto_reasons = veto_reasons(settings, run->disturbance, rule);
    if (progress) progress(*run);
    const bool counts = run->veto_reasons.empty();
    (counts ? point.runs : point.vetoed).push_back(std::move(*run));
    in_a_row = counts ? 0 : in_a_row + 1;
    if (in_a_row >= rule.most_in_a_row) {
      point.failed = true;
      break;
    }
  }
  return point;
}

Result<Run> Laboratory::run_once(const Settings& settings, const Stop& stop) {
  Run run;
  run.seconds = static_cast<double>(settings.duration_ns) * 1e-9;
  const double drain_seconds = drain_seconds_of(settings);
  for (LineProcess& node : nodes_)
    RODEO_TRY(node.ask(Json::object({{"do", "node"}, {"tcp", settings.congestion_control}, {"readouts", endpoints_}}),
                       kPatience, stop));
  const std::uint64_t lost_before = network_ ? network_->drops_before_the_switch().value_or(0) : 0;
  const std::uint64_t machine_before = network_ ? machine_drops() : 0;
  const auto start_ns = base::steady_now_ns() + static_cast<std::uint64_t>((warm_up_seconds(settings) + kHeadStart) * 1e9);
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    RODEO_TRY(nodes_[i].send(json_of({.scenario = settings,
                                      .node = static_cast<std::uint32_t>(i),
                                      .start_ns = start_ns + static_cast<std::uint64_t>(clock_offsets_ns_[i]),
                                      .drain_ns = static_cast<std::uint64_t>(drain_seconds * 1e9)})));
  RODEO_TRY(wait_until(start_ns, stop));
  SwitchCounters before;
  RODEO_TRY(mark(start_ns, run, before, stop));
  RODEO_TRY(collect_nodes(run, drain_seconds, stop));
  run.ended_unix_seconds = unix_now();
  RODEO_TRY(collect_readouts(run, stop));
  if (driver_ != nullptr) run.at_switch = since(before, RODEO_TRY(driver_->counters()));
  if (network_) {
    run.disturbance.machine_drops = machine_drops() - machine_before;
    run.disturbance.link_drops = network_->drops_before_the_switch().value_or(0) - lost_before;
    RODEO_TRY(wait_for_empty_switch(settings, run));
  }
  run.disturbance.clock_error_seconds = clock_error_seconds_;
  return run;
}

Result<void> Laboratory::mark(std::uint64_t start_ns, Run& run, SwitchCounters& before, const Stop& stop) {
  if (driver_ != nullptr) {
    before = RODEO_TRY(driver_->counters());
    RODEO_TRY(driver_->start());
  }
  run.started_unix_seconds = unix_now();
  for (LineProcess& readout : readouts_) RODEO_TRY(readout.ask(Json::object({{"do", "mark"}}), kPatience, stop));
  run.disturbance.counting_lateness_seconds = static_cast<double>(base::steady_now_ns() - start_ns) * 1e-9;
  return {};
}

Result<Run> Laboratory::run_load(const Settings& settings, LineProcess& load, const Stop& stop) {
  Run run;
  run.seconds = static_cast<double>(settings.duration_ns) * 1e-9;
  run.real_time = false;
  const auto places = [&](bool readouts, std::uint32_t count) {
    Json list = Json::array();
    for (std::uint32_t i = 0; i < count; ++i)
      list.push_back(Json::object({{"address", KernelNetwork::address(readouts, i)},
                                   {"namespace", (readouts ? network_->readout(i) : network_->node(i)).path()}}));
    return list;
  };
  Json scenario = Json::object();
  for (const ScenarioSetting& one : scenario_settings()) scenario[one.key.name] = one.text(settings);
  const std::uint64_t lost_before = network_->drops_before_the_switch().value_or(0);
  const std::uint64_t machine_before = machine_drops();
  RODEO_TRY(load.ask(Json::object({{"do", "start"},
                                   {"readouts", places(true, settings.topology.readouts)},
                                   {"nodes", places(false, settings.topology.nodes)},
                                   {"settings", std::move(scenario)}}),
                     kPatienceWithLoad, stop));
  SwitchCounters before;
  RODEO_TRY(mark(base::steady_now_ns(), run, before, stop));
  const milliseconds patience = kPatienceWithLoad + milliseconds(static_cast<std::int64_t>(run.seconds * 1e3));
  run.load = RODEO_TRY(load.ask(Json::object({{"do", "measure"}, {"seconds", run.seconds}}), patience, stop));
  run.ended_unix_seconds = unix_now();
  run.seconds = member_of(run.load, "seconds").number();
  run.rate_hz = member_of(run.load, "rate_hz").number();
  run.events_scheduled = run.events_requested = member_of(run.load, "events_requested").unsigned_integer();
  run.events_completed = member_of(run.load, "events_completed").unsigned_integer();
  run.latency_p50_us = member_of(run.load, "latency_p50_us").number();
  run.latency_p99_us = member_of(run.load, "latency_p99_us").number();
  RODEO_TRY(collect_readouts(run, stop));
  run.at_switch = since(before, RODEO_TRY(driver_->counters()));
  RODEO_TRY(load.ask(Json::object({{"do", "stop"}}), kPatienceWithLoad, stop));
  run.disturbance.machine_drops = machine_drops() - machine_before;
  run.disturbance.link_drops = network_->drops_before_the_switch().value_or(0) - lost_before;
  RODEO_TRY(wait_for_empty_switch(settings, run));
  return run;
}

Result<void> Laboratory::collect_nodes(Run& run, double drain_seconds, const Stop& stop) {
  std::vector<std::uint64_t> latencies;
  std::vector<std::uint64_t> lateness;
  const milliseconds patience(static_cast<std::int64_t>((run.seconds + drain_seconds + 20) * 1e3));
  for (LineProcess& node : nodes_) {
    Json said = RODEO_TRY(node.receive(patience, stop));
    for (; said.find("values") != nullptr; said = RODEO_TRY(node.receive(patience, stop))) {
      auto& values = member_of(said, "values").string() == "latency_ns" ? latencies : lateness;
      for (const Json& value : member_of(said, "list").elements()) values.push_back(value.unsigned_integer());
    }
    const auto count = [&](const char* name) { return member_of(said, name).unsigned_integer(); };
    run.events_scheduled += count("scheduled");
    run.events_requested += count("requested");
    run.events_held += count("held");
    run.events_completed += count("completed");
    run.rate_hz += member_of(said, "completed_in_time").number() / run.seconds;
    run.real_time = run.real_time && member_of(said, "real_time").boolean();
  }
  if (!latencies.empty()) {
    run.latency_p50_us = percentile(latencies, 0.5) * 1e-3;
    run.latency_p99_us = percentile(latencies, 0.99) * 1e-3;
    run.latency_max_us = percentile(latencies, 1) * 1e-3;
  }
  run.lateness_p99_us = percentile(lateness, 0.99) * 1e-3;
  run.disturbance.request_lateness_seconds = percentile(lateness, 1) * 1e-9;
  return {};
}

Result<void> Laboratory::collect_readouts(Run& run, const Stop& stop) {
  for (LineProcess& readout : readouts_) {
    const Json said = RODEO_TRY(readout.ask(Json::object({{"do", "counters"}}), kPatience, stop));
    const auto count = [&](const char* name) { return member_of(said, name).unsigned_integer(); };
    const auto at_least = [&](double& most, const char* name, double unit) {
      most = std::max(most, member_of(said, name).number() * unit);
    };
    run.retransmits += count("retransmits");
    run.timeouts += count("timeouts");
    run.loss_probes += count("loss_probes");
    at_least(run.answer_lateness_p99_us, "lateness_p99_ns", 1e-3);
    at_least(run.disturbance.answer_lateness_seconds, "lateness_max_ns", 1e-9);
    const std::uint64_t trip = count("smallest_round_trip_ns");
    if (trip != 0 && (run.smallest_round_trip_ns == 0 || trip < run.smallest_round_trip_ns))
      run.smallest_round_trip_ns = trip;
    if (!network_) run.disturbance.machine_drops += count("machine_drops");
  }
  return {};
}

/// When nodes close, frames under way still drain through the ports; then the pool must be empty.
Result<void> Laboratory::wait_for_empty_switch(const Settings& settings, Run& run) {
  const double queued = static_cast<double>(settings.traffic.event_bytes) * settings.traffic.events_in_flight * 8 /
                        static_cast<double>(settings.topology.node_link_bps);
  constexpr int kPause = 10;
  for (int left_ms = 2000 + static_cast<int>(1000 * std::min(queued, 20.0)); left_ms > 0; left_ms -= kPause) {
    const auto now = RODEO_TRY(driver_->counters());
    run.disturbance.left_in_pool_bytes = now.occupancy_bytes.value_or(0);
    if (run.disturbance.left_in_pool_bytes == 0) return {};
    poll(nullptr, 0, kPause);
  }
  return {};
}

}  // namespace rodeo::network::laboratory
