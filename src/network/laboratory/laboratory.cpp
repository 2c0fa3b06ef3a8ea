#include "network/laboratory/laboratory.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <limits>
#include <thread>

#include "base/clock.h"
#include "network/laboratory/leftovers.h"
#include "network/laboratory/sockets.h"
#include "network/laboratory/traffic_line.h"

namespace rodeo::network::laboratory {

namespace {

using std::chrono::milliseconds;

constexpr int kClockQuestions = 16;
constexpr double kHeadStart = 0.15;  // s, from the order to the first request

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

void append_values(const Line& line, std::vector<std::uint64_t>& to) {
  const std::string list = line.text("list");
  for (const char *at = list.data(), *end = at + list.size(); at < end;) {
    std::uint64_t value = 0;
    const auto read = std::from_chars(at, end, value);
    if (read.ec != std::errc{}) return;
    to.push_back(value);
    at = read.ptr + 1;
  }
}

/// Waits in steps, so that Ctrl-C is heard.
Result<void> wait_until(std::uint64_t at_ns, const Stop& stop) {
  for (std::uint64_t now = base::steady_now_ns(); now < at_ns; now = base::steady_now_ns()) {
    if (stop && stop()) return std::unexpected(Error{"network.interrupted", "the run was interrupted"});
    std::this_thread::sleep_for(
        std::min(std::chrono::nanoseconds(at_ns - now), std::chrono::nanoseconds(milliseconds(100))));
  }
  return {};
}

double drain_seconds_of(const Settings& settings) {  // two time-outs may follow each other, and queues must empty
  return 1 + 2 * std::chrono::duration<double>(settings.smallest_retransmission_timeout).count();
}

}  // namespace

Result<std::unique_ptr<Laboratory>> Laboratory::in_namespaces(const Settings& settings,
                                                              const std::vector<std::string>& agent, const Stop& stop) {
  end_leftovers();
  auto network = RODEO_TRY(KernelNetwork::make(settings));
  std::unique_ptr<Laboratory> laboratory(new Laboratory);
  laboratory->network_ = std::move(network);
  laboratory->driver_ = laboratory->network_.get();
  std::vector<std::string> addresses;
  for (const bool is_readout : {true, false}) {
    const std::uint32_t count = is_readout ? settings.topology.readouts : settings.topology.nodes;
    for (std::uint32_t i = 0; i < count; ++i) {
      const NetworkNamespace& space = is_readout ? laboratory->network_->readout(i) : laboratory->network_->node(i);
      auto started =
          RODEO_TRY(AgentProcess::start(fmt::format("{} {}", is_readout ? "readout" : "node", i), agent, space.fd()));
      (is_readout ? laboratory->readouts_ : laboratory->nodes_).push_back(std::move(started));
      if (is_readout) addresses.push_back(KernelNetwork::readout_address(i));
    }
  }
  RODEO_TRY(laboratory->begin(addresses, settings.congestion_control, stop));
  return laboratory;
}

Result<std::unique_ptr<Laboratory>> Laboratory::on_hosts(const Settings& settings, const std::vector<Host>& hosts,
                                                         const std::vector<std::string>& agent, SwitchDriver* driver,
                                                         const Stop& stop) {
  end_leftovers();
  std::unique_ptr<Laboratory> laboratory(new Laboratory);
  laboratory->driver_ = driver;
  std::vector<std::string> addresses;
  for (const Host& host : hosts) {
    std::vector<std::string> command = host.command;
    command.insert(command.end(), agent.begin(), agent.end());
    auto started = RODEO_TRY(
        AgentProcess::start(fmt::format("{} {}", host.is_readout ? "readout" : "node", host.address), command, -1));
    (host.is_readout ? laboratory->readouts_ : laboratory->nodes_).push_back(std::move(started));
    if (host.is_readout) addresses.push_back(host.address);
  }
  RODEO_TRY(laboratory->begin(addresses, settings.congestion_control, stop));
  return laboratory;
}

Result<void> Laboratory::begin(const std::vector<std::string>& addresses, const std::string& congestion_control,
                               const Stop& stop) {
  for (auto* agents : {&readouts_, &nodes_}) {
    for (AgentProcess& agent : *agents) {
      const auto answer = RODEO_TRY(agent.ask(Line("hello"), stop));
      if (answer.integer("version").value_or(0) != static_cast<std::int64_t>(kAgentVersion))
        return std::unexpected(Error{"network.agent", "the agent is of another version of rodeo", agent.name(),
                                     "install the same version on all hosts"});
    }
  }
  for (std::size_t i = 0; i < readouts_.size(); ++i) {
    const auto answer = RODEO_TRY(readouts_[i].ask(
        Line("readout").set("address", addresses[i]).set("port", "0").set("tcp", congestion_control), stop));
    endpoints_ += fmt::format("{}{}:{}", endpoints_.empty() ? "" : ",", addresses[i], answer.text("port"));
  }
  return compare_clocks(stop);
}

/// Nodes start at one time of our clock: each says what its own shows, and the quickest of several answers errs the least.
Result<void> Laboratory::compare_clocks(const Stop& stop) {
  clock_offsets_ns_.assign(nodes_.size(), 0);
  clock_error_seconds_ = 0;
  if (network_) return {};  // one kernel, one clock
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    std::uint64_t quickest = std::numeric_limits<std::uint64_t>::max();
    for (int question = 0; question < kClockQuestions; ++question) {
      const std::uint64_t before = base::steady_now_ns();
      const auto answer = nodes_[i].ask(Line("clock"), stop);
      const std::uint64_t took = base::steady_now_ns() - before;
      if (!answer) return std::unexpected(answer.error());
      const auto theirs = RODEO_TRY(answer->integer("ns"));
      if (took >= quickest) continue;
      quickest = took;
      clock_offsets_ns_[i] = theirs - static_cast<std::int64_t>(before + took / 2);
    }
    clock_error_seconds_ = std::max(clock_error_seconds_, static_cast<double>(quickest) * 0.5e-9);
  }
  return {};
}

Result<Point> Laboratory::measure(const Settings& settings, const VetoRule& rule, const Stop& stop,
                                  const Progress& progress) {
  RODEO_TRY(check(settings));
  if (settings.topology.readouts != readouts_.size() || settings.topology.nodes != nodes_.size())
    return std::unexpected(Error{"network.unsupported", "the laboratory has another number of hosts", "", ""});
  if (driver_ != nullptr) RODEO_TRY(driver_->set_buffer(settings.buffer));
  Point point;
  for (unsigned in_a_row = 0; point.runs.size() < settings.repeats;) {
    auto run = run_once(settings, stop);
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
  run.seconds = settings.seconds;
  const double drain_seconds = drain_seconds_of(settings);
  for (AgentProcess& node : nodes_)
    RODEO_TRY(node.ask(Line("node").set("tcp", settings.congestion_control).set("readouts", endpoints_), stop));
  const std::uint64_t lost_before = network_ ? network_->drops_before_the_switch().value_or(0) : 0;
  const std::uint64_t machine_before = network_ ? machine_drops() : 0;
  const auto start_ns = base::steady_now_ns() + static_cast<std::uint64_t>((warm_up_seconds(settings) + kHeadStart) * 1e9);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    RunOrder order{.settings = settings,
                   .node = static_cast<std::uint32_t>(i),
                   .start_ns = start_ns + static_cast<std::uint64_t>(clock_offsets_ns_[i]),
                   .drain_seconds = drain_seconds};
    RODEO_TRY(nodes_[i].send(line_of(order)));
  }
  RODEO_TRY(wait_until(start_ns, stop));
  std::uint64_t drops_before = 0;
  DropReasons reasons_before;
  std::vector<PortDrops> ports_before;
  if (driver_ != nullptr) {
    const auto before = RODEO_TRY(driver_->counters());
    drops_before = before.drops;
    reasons_before = before.reasons.value_or(DropReasons{});
    ports_before = before.ports;
    RODEO_TRY(driver_->start());
  }
  run.started_unix_seconds = unix_now();
  for (AgentProcess& readout : readouts_) RODEO_TRY(readout.ask(Line("mark"), stop));
  const std::uint64_t counted_from = base::steady_now_ns();
  run.disturbance.counting_lateness_seconds = static_cast<double>(counted_from - start_ns) * 1e-9;
  RODEO_TRY(collect_nodes(settings, run, drain_seconds, stop));
  run.ended_unix_seconds = unix_now();
  RODEO_TRY(collect_readouts(run, stop));
  if (driver_ != nullptr) {
    const auto after = RODEO_TRY(driver_->counters());
    run.drops = after.drops - std::min(drops_before, after.drops);
    run.reasons = after.reasons;
    if (run.reasons) {
      run.reasons->pool_full -= reasons_before.pool_full;
      run.reasons->threshold -= reasons_before.threshold;
      run.reasons->port_limit -= reasons_before.port_limit;
    }
    run.max_buffer_bytes = after.max_buffer_bytes;
    run.max_buffer_cell_bytes = after.max_buffer_cell_bytes;
    run.ports = after.ports;
    for (std::size_t i = 0; i < std::min(run.ports.size(), ports_before.size()); ++i)
      run.ports[i].drops -= std::min(ports_before[i].drops, run.ports[i].drops);
  }
  if (network_) {
    run.disturbance.machine_drops = machine_drops() - machine_before;
    run.disturbance.link_drops = network_->drops_before_the_switch().value_or(0) - lost_before;
    RODEO_TRY(wait_for_empty_switch(settings, run));
  }
  run.disturbance.request_lateness_seconds = run.lateness_max_us * 1e-6;
  run.disturbance.answer_lateness_seconds = run.answer_lateness_max_us * 1e-6;
  run.disturbance.clock_error_seconds = clock_error_seconds_;
  run.clock_error_us = clock_error_seconds_ * 1e6;
  return run;
}

Result<void> Laboratory::collect_nodes(const Settings& settings, Run& run, double drain_seconds, const Stop& stop) {
  std::vector<std::uint64_t> latencies;
  std::vector<std::uint64_t> lateness;
  double completed_in_time = 0;
  const milliseconds patience(static_cast<std::int64_t>((settings.seconds + drain_seconds + 20) * 1e3));
  for (AgentProcess& node : nodes_) {
    for (;;) {
      const auto line = RODEO_TRY(node.receive(patience, stop));
      if (line.verb() == "values") append_values(line, line.text("of") == "latency_ns" ? latencies : lateness);
      if (line.verb() != "done") continue;
      const auto count = [&](const char* key) {
        return static_cast<std::uint64_t>(std::max<std::int64_t>(line.integer(key).value_or(0), 0));
      };
      run.events_scheduled += count("scheduled");
      run.events_requested += count("requested");
      run.events_held += count("held");
      run.events_completed += count("completed");
      completed_in_time += line.number("completed_in_time").value_or(0);
      run.real_time = run.real_time && count("real_time") != 0;
      break;
    }
  }
  run.rate_hz = completed_in_time / settings.seconds;
  if (!latencies.empty()) {
    run.latency_p50_us = percentile(latencies, 0.5) * 1e-3;
    run.latency_p99_us = percentile(latencies, 0.99) * 1e-3;
    run.latency_max_us = percentile(latencies, 1) * 1e-3;
  }
  run.lateness_p99_us = percentile(lateness, 0.99) * 1e-3;
  run.lateness_max_us = percentile(lateness, 1) * 1e-3;
  return {};
}

Result<void> Laboratory::collect_readouts(Run& run, const Stop& stop) {
  for (AgentProcess& readout : readouts_) {
    const auto line = RODEO_TRY(readout.ask(Line("counters"), stop));
    const auto count = [&](const char* key) {
      return static_cast<std::uint64_t>(std::max<std::int64_t>(line.integer(key).value_or(0), 0));
    };
    run.retransmits += count("retransmits");
    run.timeouts += count("timeouts");
    run.loss_probes += count("loss_probes");
    run.answer_lateness_p99_us = std::max(run.answer_lateness_p99_us, static_cast<double>(count("lateness_p99_ns")) * 1e-3);
    run.answer_lateness_max_us = std::max(run.answer_lateness_max_us, static_cast<double>(count("lateness_max_ns")) * 1e-3);
    const std::uint64_t trip = count("smallest_round_trip_ns");
    if (trip != 0 && (run.smallest_round_trip_ns == 0 || trip < run.smallest_round_trip_ns))
      run.smallest_round_trip_ns = trip;
    if (!network_) run.disturbance.machine_drops += count("machine_drops");
  }
  return {};
}

/// What is under way when nodes close still drains through the ports; after that the pool must be empty.
Result<void> Laboratory::wait_for_empty_switch(const Settings& settings, Run& run) {
  const double queued = static_cast<double>(settings.traffic.event_bytes) * settings.traffic.events_in_flight * 8 /
                        static_cast<double>(settings.topology.node_link_bps);
  for (double left = 2 + std::min(queued, 20.0); left > 0; left -= 0.01) {
    const auto now = RODEO_TRY(driver_->counters());
    run.disturbance.left_in_pool_bytes = now.occupancy_bytes.value_or(0);
    if (run.disturbance.left_in_pool_bytes == 0) return {};
    poll(nullptr, 0, 10);
  }
  return {};
}

}  // namespace rodeo::network::laboratory
