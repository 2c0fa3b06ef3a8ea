#include "network/job.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "network/scenario_settings.h"
#include "network/simulator/simulate.h"
#include "network/tables.h"

namespace rodeo::network {

using settings::ConfiguredValue;
using settings::Table;

namespace {

Json json_of(const Table& table) {
  Json out = Json::object();
  const Parameters& keys = table.parameters();
  for (const ConfiguredValue& setting : table.settings()) {
    const std::string& name = setting.key.name;
    switch (setting.key.type) {
      case KeyType::boolean: out[name] = keys.boolean(name); break;
      case KeyType::integer: out[name] = keys.integer(name); break;
      case KeyType::real: out[name] = keys.real(name); break;
      case KeyType::text_list: out[name] = Json::array_of(keys.list(name)); break;
      default: out[name] = keys.text(name);
    }
  }
  return out;
}

/// A number with the unit of the setting, in its base unit.
Result<double> number_of(const ScenarioSetting& setting, const std::string& text) {
  Scenario scenario;
  RODEO_TRY(setting.assign(scenario, text));
  const std::string base = setting.text(scenario);
  double value = 0;
  if (const auto read = std::from_chars(base.data(), base.data() + base.size(), value);
      read.ec != std::errc{} || read.ptr != base.data() + base.size())
    return std::unexpected(Error{"config.bad_value", fmt::format("\"{}\" is not a number", text)});
  return value;
}

class Job {
 public:
  explicit Job(const Configuration& configuration) : network_(*configuration.table("network")) {}

  std::expected<Json, ConfigurationErrors> make() {
    read_scenario();
    Json job = Json::object({{"scenario", Json::object()},
                             {"size", json_of(*network_.table("size"))},
                             {"executor", json_of(*network_.table("executor"))}});
    for (const ScenarioSetting& one : scenario_settings()) {
      if (table_of(one).given(one.key.name)) job["scenario"][one.key.name] = one.text(scenario_);
    }
    job["sweep"] = nullptr;
    if (const Table* sweep = network_.table("sweep")) job["sweep"] = read_sweep(*sweep);
    if (!errors_.empty()) return std::unexpected(std::move(errors_));
    return job;
  }

 private:
  void complain(Error error, const std::string& where) {
    if (error.where.empty()) error.where = where;
    errors_.push_back(std::move(error));
  }

  const Table& table_of(const ScenarioSetting& setting) const { return *network_.table(setting.table); }

  void read_scenario() {
    for (const bool presets : {true, false}) {
      for (const ScenarioSetting& one : scenario_settings()) {
        const Table& table = table_of(one);
        if (one.is_preset() != presets || !table.given(one.key.name)) continue;
        try {
          one.set(scenario_, table.parameters());
        } catch (const SetupError& refused) {
          complain(refused.error().within(one.key.name), where_of(table, one.key.name));
        }
      }
    }
    if (!errors_.empty()) return;
    // Points of a sweep may need more than the network carries: a sweep may search for that limit.
    if (const auto good = check(scenario_);
        !good && !(network_.table("sweep") != nullptr && good.error().code == "network.overload"))
      complain(good.error(), network_.where());
  }

  std::vector<std::string> values_of(const Table& axis, const SweepAxis& range, const ScenarioSetting& setting) {
    if (axis.given("values")) return range.values;
    if (range.from.empty() || range.to.empty() || range.steps < 2) {
      complain({"config.bad_value", fmt::format("{} has neither `values` nor a whole range", axis.path()), "",
                "give values = [...], or from, to and steps (2 or more)"},
               axis.where());
      return {};
    }
    const auto first = number_of(setting, range.from);
    const auto last = number_of(setting, range.to);
    if (!first || !last) {
      complain(!first ? first.error() : last.error(), where_of(axis, !first ? "from" : "to"));
      return {};
    }
    if (range.log && !(*first > 0 && *last > 0)) {
      complain({"config.bad_value", "a logarithmic range needs ends above 0"}, axis.where());
      return {};
    }
    const KeyType type = setting.key.type;  // the type text is a size or a bit rate
    const bool whole = type == KeyType::integer || type == KeyType::size || type == KeyType::text;
    std::vector<std::string> values;
    for (std::int64_t i = 0; i < range.steps; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(range.steps - 1);
      const double value = range.log ? *first * std::pow(*last / *first, share) : *first + (*last - *first) * share;
      values.push_back(whole ? fmt::format("{:.0f}", value) : fmt::format("{:.10g}", value));
    }
    return values;
  }

  Json read_sweep(const Table& sweep) {
    Json out = json_of(sweep);
    const Sweep settings = sweep_settings().read(sweep.parameters());
    const std::string& search = settings.search;
    if (search != "none") {
      double ends[2] = {};
      for (const int i : {0, 1}) {
        const char* name = i == 0 ? "low" : "high";
        const auto value = number_of(*find_scenario_setting(search), i == 0 ? settings.low : settings.high);
        if (!value) {
          Error error = value.error().within(name);
          error.next =
              fmt::format("a search for a {} needs {}, such as {}", search, name, search == "rate" ? "20kHz" : "100MB");
          complain(std::move(error), where_of(sweep, name));
          continue;
        }
        ends[i] = *value;
        out[name] = *value;
      }
      if (errors_.empty() && !(0 < ends[0] && ends[0] < ends[1])) {
        complain({"config.bad_value", "a search needs 0 < low < high"}, sweep.where());
      }
    }
    out["axes"] = Json::array();
    double points = 1;
    for (const Table& axis : sweep.tables("axis")) {
      const SweepAxis range = axis_settings().read(axis.parameters());
      const std::string& name = range.key;
      const ScenarioSetting* setting = find_scenario_setting(name);
      if (setting == nullptr) {
        complain(scenario_of({{name, ""}}).error(), where_of(axis, "key"));
        continue;
      }
      if (name == search) {
        complain({"config.bad_value", fmt::format("{} is searched for, and cannot be an axis", name)},
                 where_of(axis, "key"));
        continue;
      }
      const std::vector<std::string> values = values_of(axis, range, *setting);
      for (const std::string& value : values) {
        if (const auto alone = scenario_of({{name, value}}); !alone) complain(alone.error(), where_of(axis, "values"));
      }
      points *= static_cast<double>(values.size());
      out["axes"].push_back(Json::object({{"key", name}, {"values", Json::array_of(values)}}));
    }
    if (points * static_cast<double>(settings.repeats) > 1e6) {
      complain({"config.bad_value", fmt::format("the sweep has {:.0f} points, more than a million runs", points), "",
                "make its axes shorter"},
               sweep.where());
    }
    return out;
  }

  const Table& network_;
  Scenario scenario_;
  ConfigurationErrors errors_;
};

}  // namespace

std::expected<Json, ConfigurationErrors> network_job(const Configuration& configuration) {
  if (configuration.table("network") == nullptr) return Json();
  return Job(configuration).make();
}

}  // namespace rodeo::network
