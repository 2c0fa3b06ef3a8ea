// Settings of a scenario: all tables as one, and a scenario from named texts.
#include "network/scenario_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/core.h>

#include "base/nearest.h"
#include "base/units.h"
#include "network/settings/tables.h"

namespace rodeo::network {

namespace {

using Kind = ScenarioSetting::Kind;

const std::vector<ScenarioSetting>& all_settings() {
  static const std::vector<ScenarioSetting> all = [] {
    std::vector<ScenarioSetting> joined;
    for (const auto& table : {settings::topology_table(), settings::traffic_table(), settings::switch_table(),
                              settings::simulation_table(), settings::tcp_table()}) {
      joined.insert(joined.end(), table.begin(), table.end());
    }
    return joined;
  }();
  return all;
}

}  // namespace

std::span<const ScenarioSetting> scenario_settings() { return all_settings(); }

std::string readable(const ScenarioSetting& setting, const Scenario& scenario) {
  std::string text = setting.text(scenario);
  double number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc{} || !std::isfinite(number))
    return text;  // a word
  switch (setting.kind) {
    case Kind::size: return base::format_size(static_cast<std::uint64_t>(number));
    case Kind::rate: return base::format_quantity(number, "Hz");
    case Kind::bit_rate: return base::format_quantity(number, "bps");
    case Kind::duration: {
      // In the largest unit that it is a whole number of: "120 s", which can be read again.
      const auto ns = std::llround(number * 1e9);
      constexpr std::pair<std::int64_t, std::string_view> kUnits[] = {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1000, "us"}};
      for (const auto& [unit, name] : kUnits) {
        if (ns % unit == 0) return fmt::format("{} {}", ns / unit, name);
      }
      return fmt::format("{} ns", ns);
    }
    default: return text;
  }
}

std::string_view value_name(const ScenarioSetting& setting) {
  switch (setting.kind) {
    case Kind::count: return "N";
    case Kind::number: return "NUMBER";
    case Kind::boolean: return "true|false";
    case Kind::size: return "SIZE";
    case Kind::rate: return "RATE";
    case Kind::bit_rate: return "BITRATE";
    case Kind::duration: return "TIME";
    case Kind::choice: return "NAME";
  }
  return "VALUE";
}

const ScenarioSetting* find_scenario_setting(std::string_view name) {
  const auto found = std::ranges::find(all_settings(), name, &ScenarioSetting::name);
  return found == all_settings().end() ? nullptr : &*found;
}

Result<Scenario> scenario_of(const NamedTexts& given) {
  Scenario scenario;
  for (const bool presets : {true, false}) {
    for (const auto& [name, text] : given) {
      const ScenarioSetting* setting = find_scenario_setting(name);
      if (setting == nullptr) {
        std::vector<std::string> known;
        for (const ScenarioSetting& one : all_settings()) known.emplace_back(one.name);
        return std::unexpected(Error{"network.unknown_setting", fmt::format("{} is no setting of a network", name), "",
                                     base::did_you_mean(name, known)});
      }
      if ((name == "preset" || name == "switch") != presets) continue;
      if (auto done = setting->assign(scenario, text); !done) return std::unexpected(done.error().within(name));
    }
  }
  return scenario;
}

}  // namespace rodeo::network
