#include "network/simulator/simulate.h"

#include <fmt/core.h>

#include <chrono>
#include <ctime>

#include "network/simulator/engine/engine.h"
#include "network/simulator/train_run.h"

namespace rodeo::network {

namespace {

double thread_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Outcome run_in_packets(const Scenario& scenario, const Observers& observers) {
  SimulationEngine<false> engine(scenario, observers);
  engine.run(kNever);
  if (observers.flow) engine.visit_flows(observers.flow);
  Outcome outcome = engine.outcome();
  outcome.packet_by_packet_ns = outcome.virtual_ns;
  return outcome;
}

Outcome run_in_trains(const Scenario& scenario, const Observers& observers) {
  TrainRun engine(scenario, observers);
  engine.run();
  if (observers.flow) engine.visit_flows(observers.flow);
  return engine.outcome();
}

Result<void> refuse(std::string_view code, std::string what, std::string next) {
  return std::unexpected(Error{std::string(code), std::move(what), "", std::move(next)});
}

Result<void> check_tcp(const TcpSettings& tcp) {
  if (tcp.control == CongestionControl::none) return {};
  if (tcp.initial_window == 0 || tcp.segments_per_ack == 0) {
    return refuse("network.zero", "the initial window and the segments of an acknowledgement are at least 1", "");
  }
  if (tcp.segments_per_ack > 1 && tcp.delayed_ack_ns == 0) {
    return refuse("network.zero", "a delayed acknowledgement needs a delay",
                  "give one above 0, or acknowledge every segment");
  }
  if (tcp.window_limit_bytes > 64'000'000) {
    return refuse("network.size",
                  fmt::format("a receive window of {} B is more than the model takes", tcp.window_limit_bytes),
                  "give at most 64MB");
  }
  if (tcp.rto_min_ns == 0 || tcp.rto_initial_ns == 0 || tcp.rto_max_ns < tcp.rto_min_ns) {
    return refuse("network.zero", "retransmission time-outs are above 0, and the largest is not below the smallest", "");
  }
  return {};
}

}  // namespace

Result<void> check(const Scenario& scenario) {
  RODEO_TRY(check(scenario.topology, scenario.traffic));
  RODEO_TRY(check(scenario.buffer, scenario.traffic));
  RODEO_TRY(check_tcp(scenario.tcp));
  if (scenario.duration_ns == 0) return refuse("network.zero", "the duration is 0", "give one above 0, for example 1s");
  if (scenario.duration_ns > 100'000'000'000'000) {
    return refuse("network.size", "a simulation has at most 100000 virtual seconds", "give a shorter duration");
  }
  return {};
}

Result<Outcome> simulate(const Scenario& scenario, const Observers& observers) {
  RODEO_TRY(check(scenario));
  if (observers.occupancy && observers.occupancy_interval_ns == 0) {
    return std::unexpected(
        Error{"network.zero", "the interval of the occupancy is 0", "", "give one above 0, for example 10us"});
  }
  const auto wall = std::chrono::steady_clock::now();
  const double cpu = thread_cpu_seconds();
  Outcome outcome =
      scenario.engine == Engine::train ? run_in_trains(scenario, observers) : run_in_packets(scenario, observers);
  outcome.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();
  outcome.cpu_seconds = thread_cpu_seconds() - cpu;
  return outcome;
}

}  // namespace rodeo::network
