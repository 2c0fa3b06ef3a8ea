// One laboratory: agents on namespaces or hosts, a switch, and points measured between them with the veto rule applied.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "network/laboratory/hosts.h"
#include "network/laboratory/kernel_network.h"
#include "network/laboratory/line_process.h"
#include "network/laboratory/settings.h"
#include "network/laboratory/switch_driver.h"
#include "network/laboratory/veto.h"

namespace rodeo::network::laboratory {

/// The result of one run. Percentiles are exact, without bins.
struct Run {
  double seconds = 0;
  std::uint64_t events_scheduled = 0;
  std::uint64_t events_requested = 0;
  std::uint64_t events_held = 0;         ///< requested late because too many others were under way: caused by the network
  std::uint64_t events_completed = 0;    ///< of those scheduled
  double rate_hz = 0;                    ///< of events while counting; a partial one counts by its share of time
  std::optional<double> latency_p50_us;  ///< none if no event was completed
  std::optional<double> latency_p99_us;
  std::optional<double> latency_max_us;
  double lateness_p99_us = 0;         ///< of requests against the schedule
  double answer_lateness_p99_us = 0;  ///< of the worst readout
  bool real_time = true;              ///< all nodes paced with real-time priority
  std::uint64_t retransmits = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t loss_probes = 0;
  std::uint64_t smallest_round_trip_ns = 0;
  std::optional<SwitchCounters> at_switch;  ///< while counting; none without a driver
  Json load;                                ///< the report of a user's load on the run; null: the emulators
  double started_unix_seconds = 0;          ///< start of counting, for time series
  double ended_unix_seconds = 0;
  Disturbance disturbance;
  std::vector<std::string> veto_reasons;  ///< empty: the run counts
};

struct Point {
  std::vector<Run> runs;     ///< that count
  std::vector<Run> vetoed;   ///< in order; they do not count
  bool failed = false;       ///< VetoRule::most_in_a_row vetoes followed each other
  bool interrupted = false;  ///< by `stop`, after at least one run; further runs are left out
};

class Laboratory {
 public:
  /// Called after each run, vetoed or not.
  using Progress = std::function<void(const Run&)>;

  /// A network in this machine's kernel, with agents in it. `agent`: the command of an agent. Needs root; ends leftovers of
  /// dead laboratories.
  static Result<std::unique_ptr<Laboratory>> in_namespaces(const Settings& settings, const std::vector<std::string>& agent,
                                                           const Stop& stop);

  /// Agents on hosts. `driver` must outlive the laboratory; if it is nullptr, buffers are not set and drops are unknown.
  static Result<std::unique_ptr<Laboratory>> on_hosts(const Settings& settings, const std::vector<Host>& hosts,
                                                      const std::vector<std::string>& agent, SwitchDriver* driver,
                                                      const Stop& stop);

  /// Makes Settings::repeats runs that count. Main thread; blocks for the runs and their drains. Counts of hosts and link
  /// rates must be those with which the laboratory was made. Errors: network.agent, network.agent_silent, network.driver,
  /// network.interrupted (no run has ended), ...; vetoes are not errors.
  Result<Point> measure(const Settings& settings, const VetoRule& rule, const Stop& stop, const Progress& progress);

  /// The same with a user's load in place of the emulators (docs/network-laboratory.md, "A load of your own"). Namespaces
  /// only.
  Result<Point> measure(const Settings& settings, LineProcess& load, const VetoRule& rule, const Stop& stop,
                        const Progress& progress);

  SwitchDriver* driver() { return driver_; }

 private:
  Laboratory() = default;
  Result<void> add(const Host& host, const std::vector<std::string>& agent, int network_namespace);
  Result<void> begin(const Settings& settings, const Stop& stop);
  Result<void> compare_clocks(const Stop& stop);
  Result<Point> repeat(const Settings& settings, const std::function<Result<Run>()>& once, const VetoRule& rule,
                       const Progress& progress);
  Result<Run> run_once(const Settings& settings, const Stop& stop);
  Result<Run> run_load(const Settings& settings, LineProcess& load, const Stop& stop);
  Result<void> mark(std::uint64_t start_ns, Run& run, SwitchCounters& before, const Stop& stop);
  Result<void> collect_nodes(Run& run, double drain_seconds, const Stop& stop);
  Result<void> collect_readouts(Run& run, const Stop& stop);
  Result<void> wait_for_empty_switch(const Settings& settings, Run& run);

  std::unique_ptr<KernelNetwork> network_;  // nullptr: hosts
  SwitchDriver* driver_ = nullptr;
  std::vector<LineProcess> readouts_;
  std::vector<LineProcess> nodes_;
  std::vector<std::string> addresses_;          // of readouts
  Json endpoints_;                              // of readouts: ["A:P", "A:P"]
  std::vector<std::int64_t> clock_offsets_ns_;  // of nodes: theirs - ours
  double clock_error_seconds_ = 0;
};

}  // namespace rodeo::network::laboratory
