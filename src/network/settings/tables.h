// The tables of settings, one for each table of the configuration, in the order in which people see them.
#pragma once

#include <vector>

#include "network/scenario_text.h"

namespace rodeo::network::settings {

std::vector<ScenarioSetting> topology_table();
std::vector<ScenarioSetting> traffic_table();
std::vector<ScenarioSetting> switch_table();
std::vector<ScenarioSetting> simulation_table();
std::vector<ScenarioSetting> tcp_table();

}  // namespace rodeo::network::settings

// In a table: how a setting is read into the scenario `s` from `t`, and how it is written.
#define READS(expression) [](Scenario& s, std::string_view t) -> Result<void> { return expression; }
#define WRITES(expression) [](const Scenario& s) -> std::string { return expression; }
