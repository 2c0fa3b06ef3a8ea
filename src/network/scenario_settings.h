// Settings of a scenario by name, as configuration files, sweeps, the command and Python write them: one table of them for all.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "network/simulator/scenario.h"
#include "rodeo/settings.h"

namespace rodeo::network {

/// One of them: `event_size` in the table [network.traffic] of a configuration, `event_size=` in Python, an axis of a sweep.
struct ScenarioSetting : Setting<Scenario> {
  std::string_view table;  ///< of the configuration: topology, traffic, switch, simulation or tcp

  /// Presets change other settings, and are taken before them.
  bool is_preset() const { return key.name == "preset" || key.name == "switch"; }
  /// A text whose default is one.
  bool is_bit_rate() const { return key.type == KeyType::text && key.fallback.ends_with("bps"); }

  /// Takes a value as people write it, or a number in the base unit (bytes, hertz, seconds). Errors: network.bad_setting,
  /// network.unknown_preset, those of base/units.h.
  Result<void> assign(Scenario& scenario, std::string_view text) const;
  /// In the base unit, as programs exchange it; assign() reads it.
  std::string text(const Scenario& scenario) const;
  /// As people write it: "5 MB", "12 kHz", "200 ms"; assign() reads it too. Sizes and rates are rounded to what `5.12 MB` says.
  std::string readable(const Scenario& scenario) const;
  /// What --help calls a value: SIZE, RATE, N, ...
  std::string_view value_name() const;
};

std::span<const ScenarioSetting> scenario_settings();

/// nullptr if there is none of that name.
const ScenarioSetting* find_scenario_setting(std::string_view name);

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

/// A scenario from settings, presets first whatever the order; what is not named is as in the preset. Errors: network.unknown_setting and
/// those of assign(). Says nothing of whether the network makes sense: check() does.
Result<Scenario> scenario_of(const NamedTexts& settings);

}  // namespace rodeo::network
