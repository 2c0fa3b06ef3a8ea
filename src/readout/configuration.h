// The keys of a run and its ROBs, and what a configuration gives to a readout process: plain settings, the library with the
// plug-ins loaded, and settings that belong to the process instead of the run. Each key is declared once; value and
// reference entry follow from it.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "readout/library.h"
#include "readout/settings.h"
#include "readout/silence_limit.h"
#include "rodeo/settings.h"
#include "settings/configuration.h"

namespace rodeo::readout {

using settings::Configuration;
using settings::ConfigurationErrors;

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

struct ReadoutConfiguration {
  std::unique_ptr<Library> library;
  ReadoutSettings settings;
  bool numbered = false;  ///< the run took the next free number, because the configuration gives none
  bool control_socket = true;
  bool may_change_name = false;      ///< if the name is in use, a hyphen and the process id are appended
  std::string metrics_listen;        ///< empty: no metrics over HTTP
  std::string configuration_sha256;  ///< result of settings::configuration_sha256()
};

/// The errors for which `rodeo readout` would refuse this configuration, without starting it. `registry`: the registry of
/// the library that read it.
ConfigurationErrors check_readout(const Configuration& configuration, const base::ComponentRegistry& registry);

/// The silences after which a link still finds its place; for `rodeo check`. The configuration must have a readout and no
/// errors.
std::vector<SilenceNote> silence_notes(const Configuration& configuration, const base::ComponentRegistry& registry);

/// The directories of a run's files.
std::vector<std::string> data_directories(const ReadoutSettings& settings);

/// Reads a configuration that was loaded with this library. Returns all errors at once.
std::expected<ReadoutConfiguration, ConfigurationErrors> configure_readout(const Configuration& configuration,
                                                                           std::unique_ptr<Library> library);

}  // namespace rodeo::readout
