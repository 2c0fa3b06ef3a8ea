// Settings of a scenario by name: one table for configuration files, sweeps, the command and Python.
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

/// One setting, such as `event_size`: a key in the table [network.traffic] of a configuration, `event_size=` in Python, an
/// axis of a sweep.
struct ScenarioSetting : Setting<Scenario> {
  std::string_view table;  ///< table of the configuration: topology, traffic, switch, simulation or tcp

  /// Presets change other settings, and are applied before them.
  bool is_preset() const { return key.name == "preset" || key.name == "switch"; }
  /// True for a text whose default is a bit rate.
  bool is_bit_rate() const { return key.type == KeyType::text && key.fallback.ends_with("bps"); }

  /// Sets a value from a text with a unit, or a number in the base unit (bytes, hertz, seconds). Errors:
  /// network.bad_setting, network.unknown_preset, and those of base/units.h.
  Result<void> assign(Scenario& scenario, std::string_view text) const;
  /// The value in the base unit, for programs; assign() reads it.
  std::string text(const Scenario& scenario) const;
  /// The value for people: "5 MB", "12 kHz", "200 ms"; assign() reads it, too. Sizes and rates are rounded to three digits,
  /// as in `5.12 MB`.
  std::string readable(const Scenario& scenario) const;
  /// The name of a value in --help: SIZE, RATE, N, ...
  std::string_view value_name() const;
};

std::span<const ScenarioSetting> scenario_settings();

/// The setting of this name, or nullptr.
const ScenarioSetting* find_scenario_setting(std::string_view name);

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

/// A scenario from settings. Presets are applied first, in any order of the list; other settings keep the preset's values.
/// Errors: network.unknown_setting and those of assign(). The network is not checked here: check() does this.
Result<Scenario> scenario_of(const NamedTexts& settings);

}  // namespace rodeo::network
