// From a configuration to what a readout process runs: plain settings, the registry with the plug-ins loaded, and what belongs to
// the process rather than to the run.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include "base/plugin_host.h"
#include "base/registry.h"
#include "readout/settings.h"
#include "settings/configuration.h"

namespace rodeo::control {

using settings::Configuration;
using settings::ConfigurationErrors;
using settings::ConfigurationSource;

struct ReadoutPlan {
  std::unique_ptr<base::ComponentRegistry> registry;
  std::unique_ptr<base::PluginHost> plugins;
  readout::ReadoutSettings settings;
  bool numbered = false;  ///< the run took the next free number, since the configuration gives none
  bool control_socket = true;
  bool another_name_will_do = false;  ///< where a process of this name runs, the number of this one is put behind it
  std::string metrics_listen;         ///< empty: no metrics over HTTP
};

/// What `rodeo readout` would refuse of a configuration with a readout, found without starting it.
ConfigurationErrors check_readout(const Configuration& configuration);

/// Reads a configuration and loads its plug-ins. All errors at once.
std::expected<ReadoutPlan, ConfigurationErrors> load_readout(const ConfigurationSource& source);

/// The same for a text; source.file names it in messages.
std::expected<ReadoutPlan, ConfigurationErrors> load_readout_text(std::string_view text, const ConfigurationSource& source);

}  // namespace rodeo::control
