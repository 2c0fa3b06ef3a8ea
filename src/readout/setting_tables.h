// The settings of a run and its ROBs. Each setting is declared once; keys, values and the reference follow from it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "readout/settings.h"
#include "rodeo/settings.h"

namespace rodeo::readout {

/// A run as in the configuration: number 0 means the next free number.
struct RunKeys : RunInfo {
  RunKeys() { run_number = 0; }
};

/// A process as in the configuration.
struct ProcessKeys {
  std::string name = "readout";
  std::vector<std::string> plugins;
  std::vector<std::string> plugin_directories;
  bool control = true;
  double fail_on_loss = 1;
  std::chrono::nanoseconds stop_limit = process::kStopLimit;
};

/// Types of a run by name, with their codes in the ATLAS event header.
const std::vector<std::pair<std::string, std::uint32_t>>& run_types();

const Settings<ProcessKeys>& process_settings();             ///< [readout]
const Settings<RunKeys>& run_settings();                     ///< [run]
const Settings<RobSettings>& rob_settings();                 ///< [[readout.rob]]
const Settings<LinkPolicySettings>& link_policy_settings();  ///< [readout.link_policy]

}  // namespace rodeo::readout
