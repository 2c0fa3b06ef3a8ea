// The keys of a router, and the settings that a configuration gives to its process. Each key is declared once; value and
// reference entry follow from it.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "rodeo/settings.h"
#include "router/settings.h"
#include "settings/configuration.h"
#include "settings/declarations.h"

namespace rodeo::router {

/// The keys of [router].
struct RouterKeys : RouterSettings {
  std::vector<std::string> plugins;
  std::vector<std::string> plugin_directories;
  bool control = true;
};

const Settings<RouterKeys>& router_settings();           ///< [router]
const Settings<FrontEndSettings>& front_end_settings();  ///< [router.front_ends]

/// [router] and the tables below it.
std::vector<settings::TableDeclaration> router_tables();

struct RouterConfiguration {
  RouterSettings settings;
  bool control_socket = true;
  std::string metrics_listen;             ///< empty: no metrics over HTTP
  std::string configuration_sha256 = {};  ///< settings::configuration_sha256()
};

/// Reads a configuration that has [router]. Returns all errors at once.
std::expected<RouterConfiguration, settings::ConfigurationErrors> configure_router(
    const settings::Configuration& configuration);

}  // namespace rodeo::router
