// The keys of a supervisor, and the settings that a configuration gives to its process.
#pragma once

#include <expected>
#include <string>

#include "farm/supervisor/settings.h"
#include "rodeo/settings.h"
#include "settings/configuration.h"

namespace rodeo::farm {

/// The keys of [farm.supervisor].
struct SupervisorKeys : SupervisorSettings {
  bool control = true;
};

const Settings<SupervisorKeys>& supervisor_settings();  ///< [farm.supervisor]

struct SupervisorConfiguration {
  SupervisorSettings settings;
  bool control_socket = true;
  std::string metrics_listen;  ///< Empty: no metrics over HTTP.
  std::string configuration_sha256 = {};
};

/// Reads a configuration that has [farm.supervisor]. Returns all errors at once.
std::expected<SupervisorConfiguration, settings::ConfigurationErrors> configure_supervisor(
    const settings::Configuration& configuration);

}  // namespace rodeo::farm
