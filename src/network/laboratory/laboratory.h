// One laboratory: agents on namespaces or hosts, a switch, and the points that are measured between them, with the veto rule
// applied.
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

/// The result of one run. Percentiles are exact: there are no bins.
struct Run {
  double seconds = 0;
  std::uint64_t events_scheduled = 0;
  std::uint64_t events_requested = 0;
  std::uint64_t events_held = 0;  ///< events requested late because too many others were under way: the network caused this
  std::uint64_t events_completed = 0;  ///< scheduled events that were completed
  double rate_hz = 0;  ///< rate of events while counting; an event that is partly within that time counts by its share
  std::optional<double> latency_p50_us;  ///< nothing if no event was completed
  std::optional<double> latency_p99_us;
  std::optional<double> latency_max_us;
  double lateness_p99_us = 0;         ///< lateness of requests relative to the schedule
  double answer_lateness_p99_us = 0;  ///< lateness of answers of the worst readout
  bool real_time = true;              ///< true: all nodes paced their requests with real-time priority
  std::uint64_t retransmits = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t loss_probes = 0;
  std::uint64_t smallest_round_trip_ns = 0;
  std::optional<SwitchCounters> at_switch;  ///< counters of the switch while counting; nothing without a driver
  Json load;                                ///< the report of a user's load on the run; null: the emulators ran
  double started_unix_seconds = 0;          ///< time at which counting started, for time series
  double ended_unix_seconds = 0;
  Disturbance disturbance;
  std::vector<std::string> veto_reasons;  ///< reasons for a veto; empty: the run counts
};

struct Point {
  std::vector<Run> runs;     ///< runs that count
  std::vector<Run> vetoed;   ///< runs that do not count, in order
  bool failed = false;       ///< the number of vetoes in a row reached VetoRule::most_in_a_row
  bool interrupted = false;  ///< interrupted by `stop`, after at least one run; further runs are left out
};

class Laboratory {
 public:
  /// Called after each run, vetoed or not.
  using Progress = std::function<void(const Run&)>;

  /// Makes a laboratory with a network in this machine's kernel, and agents in it. `agent`: the command of an agent. Needs
  /// root; ends leftover processes of dead laboratories.
  static Result<std::unique_ptr<Laboratory>> in_namespaces(const Settings& settings, const std::vector<std::string>& agent,
                                                           const Stop& stop);

  /// Makes a laboratory with agents on hosts. `driver` must outlive the laboratory; if it is nullptr, buffers are not set
  /// and drops are unknown.
  static Result<std::unique_ptr<Laboratory>> on_hosts(const Settings& settings, const std::vector<Host>& hosts,
                                                      const std::vector<std::string>& agent, SwitchDriver* driver,
                                                      const Stop& stop);

  /// Makes Settings::repeats runs that count. Call it on the main thread; it blocks for the runs and their drains. Numbers
  /// of hosts and link rates must be those with which the laboratory was made. Errors: network.agent, network.agent_silent,
  /// network.driver, network.interrupted (no run has ended), ...; vetoes are not errors.
  Result<Point> measure(const Settings& settings, const VetoRule& rule, const Stop& stop, const Progress& progress);

  /// measure() with a user's load in place of the emulators (docs/explanation/network-laboratory.md, "A load of your own").
  /// Namespaces only.
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

  std::unique_ptr<KernelNetwork> network_;  // nullptr: the laboratory uses hosts
  SwitchDriver* driver_ = nullptr;
  std::vector<LineProcess> readouts_;
  std::vector<LineProcess> nodes_;
  std::vector<std::string> addresses_;          // addresses of the readouts
  Json endpoints_;                              // endpoints of the readouts: ["A:P", "A:P"]
  std::vector<std::int64_t> clock_offsets_ns_;  // for each node: its clock minus the clock of this process
  double clock_error_seconds_ = 0;
};

}  // namespace rodeo::network::laboratory
