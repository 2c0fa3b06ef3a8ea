// Turns a configuration into the settings of a router process.
#pragma once

#include <expected>
#include <string>

#include "router/settings.h"
#include "settings/configuration.h"

namespace rodeo::router {

struct RouterPlan {
  RouterSettings settings;
  bool control_socket = true;
  std::string metrics_listen;             ///< empty: no metrics over HTTP
  std::string configuration_sha256 = {};  ///< settings::configuration_sha256()
};

/// Makes the settings from a configuration with a [router]. Returns all errors at once.
std::expected<RouterPlan, settings::ConfigurationErrors> plan_router(const settings::Configuration& configuration);

}  // namespace rodeo::router
