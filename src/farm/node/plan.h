// From a configuration to what a filter node runs.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "farm/node/settings.h"
#include "rodeo/settings.h"
#include "settings/configuration.h"

namespace rodeo::farm {

/// A node as it is written: [farm.node].
struct NodeKeys : NodeSettings {
  std::vector<std::string> plugins;
  std::vector<std::string> plugin_directories;
  bool control = true;
};

const Settings<NodeKeys>& node_settings();  ///< [farm.node]

struct NodePlan {
  NodeSettings settings;
  bool control_socket = true;
  std::string metrics_listen;  ///< empty: no metrics over HTTP
  std::string configuration_sha256 = {};
};

/// What a configuration with a [farm.node] says. All errors at once.
std::expected<NodePlan, settings::ConfigurationErrors> plan_node(const settings::Configuration& configuration);

}  // namespace rodeo::farm
