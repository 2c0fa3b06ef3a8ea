// simulate() and the settings of scenarios, for rodeo.network.simulation.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <span>
#include <string>

#include "errors.h"
#include "network.h"
#include "network/scenario_settings.h"
#include "network/simulator/columns.h"

namespace rodeo::python {
namespace {

/// The numbers of a run, or None if a number does not exist. Numbers of an object have its name as a prefix.
nb::dict numbers_of(const network::Outcome& outcome) {
  nb::dict out;
  for (const auto& [name, value] : network::outcome_columns()) {
    std::string key(name);
    std::ranges::replace(key, '.', '_');
    const settings::Json found = value(outcome);
    out[key.c_str()] = found.is_null()       ? nb::object(nb::none())
                       : found.is_unsigned() ? nb::object(nb::int_(found.unsigned_integer()))
                                             : nb::object(nb::float_(found.number()));
  }
  return out;
}

/// Columns that grow during a run.
template <typename Row>
struct Series {
  std::span<const network::Column<Row>> columns;
  std::vector<std::vector<double>> values = std::vector<std::vector<double>>(columns.size());

  void add(const Row& row) {
    for (std::size_t i = 0; i < columns.size(); ++i) values[i].push_back(columns[i].value(row).number());
  }
  nb::dict arrays() {
    nb::dict out;
    for (std::size_t i = 0; i < columns.size(); ++i)
      out[std::string(columns[i].name).c_str()] = array_of(std::move(values[i]));
    return out;
  }
};

/// The interval, in virtual time, at which a run that ends at its first drop checks for drops.
constexpr std::uint64_t kDropIntervalNs = 100'000;

nb::dict simulate(const network::NamedTexts& settings, double occupancy_interval_s, bool flows, bool until_drop) {
  const network::Scenario scenario = unwrap(network::scenario_of(settings));
  Series<network::OccupancySample> series{network::occupancy_columns()};
  Series<network::FlowRecord> records{network::flow_columns()};
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
    observers.occupancy = [&series](const network::OccupancySample& sample) { series.add(sample); };
  }
  if (flows) observers.flow = [&records](const network::FlowRecord& record) { records.add(record); };
  Result<network::Outcome> outcome;
  {
    nb::gil_scoped_release released;
    outcome = network::simulate(scenario, observers);
  }
  if (interrupted) throw nb::python_error();
  nb::dict out;
  out["numbers"] = numbers_of(unwrap(std::move(outcome)));
  if (occupancy_interval_s > 0) out["occupancy"] = series.arrays();
  if (flows) out["flows"] = records.arrays();
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
