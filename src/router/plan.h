// From a configuration to what a router process runs.
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

/// What a configuration with a [router] says. All errors at once.
std::expected<RouterPlan, settings::ConfigurationErrors> plan_router(const settings::Configuration& configuration);

}  // namespace rodeo::router
