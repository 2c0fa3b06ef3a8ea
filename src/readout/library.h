// The components of this process: the default library, and the plug-ins that a configuration or a command names.
#pragma once

#include "base/plugin_host.h"
#include "base/registry.h"

namespace rodeo::readout {

/// Adds components of higher layers: every Library made after this call has them built in. Programs call it first.
void add_default_library(void (*registration)(Registry&));

/// A registry with the default library, and the host that adds plug-ins. There is one per process; it outlives all
/// components made from it.
class Library {
 public:
  Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  base::ComponentRegistry& registry() { return registry_; }
  base::PluginHost& plugins() { return plugins_; }

 private:
  base::ComponentRegistry registry_;
  base::PluginHost plugins_{registry_};
};

}  // namespace rodeo::readout
