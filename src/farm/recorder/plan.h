// From a configuration to what a recorder process runs.
#pragma once

#include <expected>
#include <string>

#include "farm/recorder/settings.h"
#include "rodeo/settings.h"
#include "settings/configuration.h"

namespace rodeo::farm {

/// A recorder as it is written: [farm.recorder].
struct RecorderKeys : RecorderSettings {
  bool control = true;
};

const Settings<RecorderKeys>& recorder_settings();  ///< [farm.recorder]
const Settings<TargetKeys>& target_settings();      ///< [farm.recorder.target]

struct RecorderPlan {
  RecorderSettings settings;
  bool control_socket = true;
  std::string metrics_listen;  ///< empty: no metrics over HTTP
  std::string configuration_sha256 = {};
};

/// What a configuration with a [farm.recorder] says. All errors at once.
std::expected<RecorderPlan, settings::ConfigurationErrors> plan_recorder(const settings::Configuration& configuration);

}  // namespace rodeo::farm
