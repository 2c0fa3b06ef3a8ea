// Settings of a scenario by name, as configuration files, sweeps and Python write them: one table of names for all of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "network/simulator/scenario.h"

namespace rodeo::network {

/// One name: `event_size` in the table [network.traffic] of a configuration, `event_size=` in Python, an axis of a sweep.
struct ScenarioSetting {
  enum class Kind : unsigned char { count, number, boolean, size, rate, bit_rate, duration, choice };

  std::string_view name;
  std::string_view table;  ///< of the configuration: topology, traffic, switch, simulation or tcp
  Kind kind;
  std::string_view help;
  std::vector<std::string_view> choices = {};
  Result<void> (*assign)(Scenario&, std::string_view text);
  std::string (*text)(const Scenario&);  ///< in the base unit, as assign() reads it
};

std::span<const ScenarioSetting> scenario_settings();
/// What text() says, as people write it: "5 MB", "12 kHz", "200 ms"; assign() reads it too. Sizes and rates are rounded to what `5.12 MB` says.
std::string readable(const ScenarioSetting& setting, const Scenario& scenario);
/// What --help calls a value of this kind: SIZE, RATE, N, ...
std::string_view value_name(const ScenarioSetting& setting);

/// nullptr if there is none of that name.
const ScenarioSetting* find_scenario_setting(std::string_view name);

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

/// A scenario from settings, presets first whatever the order; what is not named is as in the preset. Errors: network.unknown_setting,
/// network.bad_setting, network.unknown_preset, those of base/units.h. Says nothing of whether the network makes sense: check() does.
Result<Scenario> scenario_of(const NamedTexts& settings);

}  // namespace rodeo::network
