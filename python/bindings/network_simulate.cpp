// simulate() and the settings of scenarios, for rodeo.network.simulation.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "errors.h"
#include "network.h"
#include "network/scenario_settings.h"
#include "network/simulator/simulate.h"

namespace rodeo::python {
namespace {

nb::dict numbers_of(const network::Outcome& outcome) {
  nb::dict out;
  out["max_buffer_bytes"] = outcome.max_buffer_bytes;
  out["max_buffer_payload_bytes"] = outcome.max_buffer_payload_bytes;
  out["max_buffer_cell_bytes"] = outcome.max_buffer_cell_bytes;
  out["max_buffer_s"] = static_cast<double>(outcome.max_buffer_ns) * 1e-9;
  out["drops"] = outcome.drops.total();
  out["drops_pool_full"] = outcome.drops.pool_full;
  out["drops_threshold"] = outcome.drops.threshold;
  out["drops_port_limit"] = outcome.drops.port_limit;
  out["retransmits"] = outcome.retransmits;
  out["timeouts"] = outcome.timeouts;
  out["events_offered"] = outcome.events_offered;
  out["events_completed"] = outcome.events_completed;
  out["completed_rate_hz"] = outcome.completed_rate_hz();
  const auto latency = [&](std::uint64_t ns) {
    return outcome.events_completed == 0 ? nb::object(nb::none()) : nb::object(nb::float_(static_cast<double>(ns) * 1e-3));
  };
  out["latency_p50_us"] = latency(outcome.latency_p50_ns);
  out["latency_p99_us"] = latency(outcome.latency_p99_ns);
  out["latency_max_us"] = latency(outcome.latency_max_ns);
  out["packets_data"] = outcome.data.sent;
  out["packets_ack"] = outcome.ack.sent;
  out["packets_request"] = outcome.request.sent;
  out["packet_hops"] = outcome.packet_hops;
  out["virtual_seconds"] = static_cast<double>(outcome.virtual_ns) * 1e-9;
  out["packet_by_packet_s"] = static_cast<double>(outcome.packet_by_packet_ns) * 1e-9;
  out["wall_seconds"] = outcome.wall_seconds;
  out["cpu_seconds"] = outcome.cpu_seconds;
  return out;
}

/// Columns that grow while a run goes on.
struct Series {
  std::vector<double> time_s;
  std::vector<double> max_bytes;
  std::vector<double> last_bytes;
  std::vector<double> rack;
  std::vector<double> drops;
};

/// How often a run that is to end at its first drop looks for one; virtual time.
constexpr std::uint64_t kDropIntervalNs = 100'000;

nb::dict simulate(const network::NamedTexts& settings, double occupancy_interval_s, bool flows, bool until_drop) {
  const network::Scenario scenario = unwrap(network::scenario_of(settings));
  Series series;
  std::vector<network::FlowRecord> records;
  bool interrupted = false;
  bool dropped = false;
  network::Observers observers;
  observers.progress = [&](std::uint64_t) {
    if (until_drop && dropped) return false;
    nb::gil_scoped_acquire held;  // Ctrl-C
    interrupted = PyErr_CheckSignals() != 0;
    return !interrupted;
  };
  if (until_drop) {
    if (occupancy_interval_s > 0) throw nb::value_error("a run until its first drop has no occupancy to give");
    observers.occupancy_interval_ns = kDropIntervalNs;
    observers.occupancy = [&dropped](const network::OccupancySample& sample) { dropped = dropped || sample.drops > 0; };
  }
  if (occupancy_interval_s > 0) {
    observers.occupancy_interval_ns = static_cast<std::uint64_t>(occupancy_interval_s * 1e9 + 0.5);
    if (observers.occupancy_interval_ns == 0) throw nb::value_error("an interval of the occupancy is below 1 ns");
    observers.occupancy = [&series](const network::OccupancySample& sample) {
      series.time_s.push_back(static_cast<double>(sample.time_ns) * 1e-9);
      series.max_bytes.push_back(static_cast<double>(sample.max_bytes));
      series.last_bytes.push_back(static_cast<double>(sample.last_bytes));
      series.rack.push_back(sample.rack);
      series.drops.push_back(static_cast<double>(sample.drops));
    };
  }
  if (flows) observers.flow = [&records](const network::FlowRecord& record) { records.push_back(record); };
  Result<network::Outcome> outcome;
  {
    nb::gil_scoped_release released;
    outcome = network::simulate(scenario, observers);
  }
  if (interrupted) throw nb::python_error();
  nb::dict out;
  out["numbers"] = numbers_of(unwrap(std::move(outcome)));
  if (occupancy_interval_s > 0) {
    nb::dict arrays;
    arrays["time_s"] = array_of(std::move(series.time_s));
    arrays["max_bytes"] = array_of(std::move(series.max_bytes));
    arrays["last_bytes"] = array_of(std::move(series.last_bytes));
    arrays["rack"] = array_of(std::move(series.rack));
    arrays["drops"] = array_of(std::move(series.drops));
    out["occupancy"] = arrays;
  }
  if (flows) {
    nb::dict arrays;
    const auto column = [&](const char* name, auto member) {
      std::vector<double> values;
      for (const network::FlowRecord& record : records) values.push_back(static_cast<double>(record.*member));
      arrays[name] = array_of(std::move(values));
    };
    using Flow = network::FlowRecord;
    column("readout", &Flow::readout);
    column("node", &Flow::node);
    column("fragments", &Flow::fragments);
    column("segments_sent", &Flow::segments_sent);
    column("segments_dropped", &Flow::segments_dropped);
    column("retransmits", &Flow::retransmits);
    column("timeouts", &Flow::timeouts);
    column("window", &Flow::window);
    out["flows"] = arrays;
  }
  return out;
}

}  // namespace

void add_simulator(nb::module_& module) {
  module.def(
      "check", [](const network::NamedTexts& settings) { unwrap(network::check(unwrap(network::scenario_of(settings)))); },
      nb::arg("settings"));
  module.def("simulate", &simulate, nb::arg("settings"), nb::arg("occupancy_interval_s") = 0.0, nb::arg("flows") = false,
             nb::arg("until_drop") = false);
  module.def(
      "scenario",
      [](const network::NamedTexts& settings) {
        const network::Scenario scenario = unwrap(network::scenario_of(settings));
        nb::dict out;
        for (const network::ScenarioSetting& setting : network::scenario_settings()) {
          out[nb::str(setting.key.name.c_str())] = setting.text(scenario);
        }
        return out;
      },
      nb::arg("settings"));
  module.def(
      "readable",
      [](const network::NamedTexts& settings) {
        const network::Scenario scenario = unwrap(network::scenario_of(settings));
        nb::dict out;
        for (const network::ScenarioSetting& setting : network::scenario_settings()) {
          out[nb::str(setting.key.name.c_str())] = setting.readable(scenario);
        }
        return out;
      },
      nb::arg("settings"));
}

}  // namespace rodeo::python
