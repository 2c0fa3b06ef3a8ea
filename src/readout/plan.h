// Makes the plan of a readout process from a configuration: plain settings, the library with the plug-ins loaded, and
// settings that belong to the process instead of the run.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "readout/library.h"
#include "readout/settings.h"
#include "readout/told_silence.h"
#include "settings/configuration.h"

namespace rodeo::readout {

using settings::Configuration;
using settings::ConfigurationErrors;

struct ReadoutPlan {
  std::unique_ptr<Library> library;
  ReadoutSettings settings;
  bool numbered = false;  ///< the run took the next free number, because the configuration gives none
  bool control_socket = true;
  bool another_name_will_do = false;  ///< if the name is in use, a hyphen and the process id are appended
  std::string metrics_listen;         ///< empty: no metrics over HTTP
  std::string configuration_sha256;   ///< result of settings::configuration_sha256()
};

/// The errors for which `rodeo readout` would refuse this configuration, without starting it. `registry`: the registry of
/// the library that read it.
ConfigurationErrors check_readout(const Configuration& configuration, const base::ComponentRegistry& registry);

/// The silences after which a link still finds its place; for `rodeo check`. The configuration must have a readout and no
/// errors.
std::vector<SilenceNote> silence_notes(const Configuration& configuration, const base::ComponentRegistry& registry);

/// The directories of a run's files.
std::vector<std::string> data_directories(const ReadoutSettings& settings);

/// The plan of a configuration that was read with this library, or all errors at once.
std::expected<ReadoutPlan, ConfigurationErrors> plan_readout(const Configuration& configuration,
                                                             std::unique_ptr<Library> library);

}  // namespace rodeo::readout
