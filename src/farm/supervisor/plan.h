// From a configuration to what a supervisor process runs.
#pragma once

#include <expected>
#include <string>

#include "farm/supervisor/settings.h"
#include "settings/configuration.h"

namespace rodeo::farm {

struct SupervisorPlan {
  SupervisorSettings settings;
  bool control_socket = true;
  std::string metrics_listen;  ///< empty: no metrics over HTTP
  std::string configuration_sha256 = {};
};

/// What a configuration with a [farm.supervisor] says. All errors at once.
std::expected<SupervisorPlan, settings::ConfigurationErrors> plan_supervisor(const settings::Configuration& configuration);

}  // namespace rodeo::farm
