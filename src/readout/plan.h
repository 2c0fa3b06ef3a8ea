// From a configuration to what a readout process runs: plain settings, the library with the plug-ins loaded, and what belongs to
// the process rather than to the run.
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
  bool numbered = false;  ///< the run took the next free number, since the configuration gives none
  bool control_socket = true;
  bool another_name_will_do = false;  ///< where a process of this name runs, the number of this one is put behind it
  std::string metrics_listen;         ///< empty: no metrics over HTTP
  std::string configuration_sha256;   ///< settings::configuration_sha256()
};

/// What `rodeo readout` would refuse of a configuration with a readout, found without starting it.
ConfigurationErrors check_readout(const Configuration& configuration);

/// After which silence links are placed rightly; for `rodeo check`. Of a configuration with a readout that is sound.
std::vector<SilenceNote> silence_notes(const Configuration& configuration, const base::ComponentRegistry& registry);

/// Where the files of a run go.
std::vector<std::string> data_directories(const ReadoutSettings& settings);

/// What a configuration says, which was read with this library. All errors at once.
std::expected<ReadoutPlan, ConfigurationErrors> plan_readout(const Configuration& configuration,
                                                             std::unique_ptr<Library> library);

}  // namespace rodeo::readout
