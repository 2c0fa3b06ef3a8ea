// The settings of a router: one declaration of each gives its key, value and reference entry.
#pragma once

#include <string>
#include <vector>

#include "rodeo/settings.h"
#include "router/settings.h"
#include "settings/declarations.h"

namespace rodeo::router {

/// The settings of a router, with their defaults.
struct RouterKeys : RouterSettings {
  std::vector<std::string> plugins;
  std::vector<std::string> plugin_directories;
  bool control = true;
};

const Settings<RouterKeys>& router_settings();           ///< [router]
const Settings<FrontEndSettings>& front_end_settings();  ///< [router.front_ends]

/// [router] and the tables below it.
std::vector<settings::TableDeclaration> router_tables();

}  // namespace rodeo::router
