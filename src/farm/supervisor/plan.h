// Makes the plan of a supervisor process from a configuration.
#pragma once

#include <expected>
#include <string>

#include "farm/supervisor/settings.h"
#include "settings/configuration.h"

namespace rodeo::farm {

struct SupervisorPlan {
  SupervisorSettings settings;
  bool control_socket = true;
  std::string metrics_listen;  ///< Empty: no metrics over HTTP.
  std::string configuration_sha256 = {};
};

/// The plan of a configuration that has [farm.supervisor]. Returns all errors at once.
std::expected<SupervisorPlan, settings::ConfigurationErrors> plan_supervisor(const settings::Configuration& configuration);

}  // namespace rodeo::farm
