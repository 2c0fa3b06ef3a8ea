// The keys of a filter node, and the settings that a configuration gives to its process.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "farm/node/settings.h"
#include "rodeo/settings.h"
#include "settings/configuration.h"

namespace rodeo::farm {

/// The keys of [farm.node].
struct NodeKeys : NodeSettings {
  std::vector<std::string> plugins;
  std::vector<std::string> plugin_directories;
  bool control = true;
};

const Settings<NodeKeys>& node_settings();  ///< [farm.node]

struct NodeConfiguration {
  NodeSettings settings;
  bool control_socket = true;
  std::string metrics_listen;  ///< Empty: no metrics over HTTP.
  std::string configuration_sha256 = {};
};

/// Reads a configuration that has [farm.node]. Returns all errors at once.
std::expected<NodeConfiguration, settings::ConfigurationErrors> configure_node(const settings::Configuration& configuration);

}  // namespace rodeo::farm
