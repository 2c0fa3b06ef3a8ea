// Finds plug-in libraries by name or path, checks their ABI, and registers their components.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/registry.h"

namespace rodeo::base {

/// Loads plug-ins into one registry. Used by the application's thread during set-up. Libraries stay loaded until the process
/// ends: objects that they made may live anywhere.
class PluginHost {
 public:
  struct Plugin {
    std::string name;            ///< the requested name
    std::filesystem::path path;  ///< canonical
  };

  /// `directories`: plug-in directories of the configuration; searched after RODEO_PLUGIN_PATH.
  explicit PluginHost(ComponentRegistry& registry, std::vector<std::filesystem::path> directories = {});

  void add_directory(std::filesystem::path directory) { directories_.push_back(std::move(directory)); }

  /// The search path for names, in order: RODEO_PLUGIN_PATH (colon-separated), the configuration's directories, the
  /// installed lib/rodeo/plugins, `plugins` and lib/rodeo/plugins beside the running command, and its own directory.
  std::vector<std::filesystem::path> search_path() const;

  /// The library file of `name`: libNAME.so or NAME.so in the search path; a name with a `/` is a path, relative to `base`.
  /// Error base.plugin_not_found lists the places.
  Result<std::filesystem::path> find(std::string_view name, const std::filesystem::path& base = {}) const;

  /// Loads and registers a plug-in, unless it is loaded already. Errors: base.plugin_not_found,
  /// base.plugin_unloadable, base.not_a_plugin, base.plugin_abi, and those of ComponentRegistry::add_library.
  Result<Plugin> load(std::string_view name, const std::filesystem::path& base = {});

  const std::vector<Plugin>& loaded() const { return loaded_; }

 private:
  ComponentRegistry& registry_;
  std::vector<std::filesystem::path> directories_;
  std::vector<Plugin> loaded_;
};

}  // namespace rodeo::base
