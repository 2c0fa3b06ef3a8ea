// The keys of a recorder, and the settings that a configuration gives to its process.
#pragma once

#include <expected>
#include <string>

#include "farm/recorder/settings.h"
#include "rodeo/settings.h"
#include "settings/configuration.h"

namespace rodeo::farm {

/// The keys of [farm.recorder].
struct RecorderKeys : RecorderSettings {
  bool control = true;
};

const Settings<RecorderKeys>& recorder_settings();  ///< [farm.recorder]
const Settings<TargetSettings>& target_settings();  ///< [farm.recorder.target]

struct RecorderConfiguration {
  RecorderSettings settings;
  bool control_socket = true;
  std::string metrics_listen;  ///< Empty: no metrics over HTTP.
  std::string configuration_sha256 = {};
};

/// Reads a configuration that has [farm.recorder]. Returns all errors at once.
std::expected<RecorderConfiguration, settings::ConfigurationErrors> configure_recorder(
    const settings::Configuration& configuration);

}  // namespace rodeo::farm
