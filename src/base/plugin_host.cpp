#include "base/plugin_host.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <system_error>

#include "base/crash_report.h"

namespace rodeo::base {

namespace {

namespace fs = std::filesystem;

std::string dl_reason() {
  const char* reason = dlerror();
  return reason == nullptr ? "no reason given" : reason;
}

}  // namespace

PluginHost::PluginHost(ComponentRegistry& registry, std::vector<fs::path> directories)
    : registry_(registry), directories_(std::move(directories)) {}

std::vector<fs::path> PluginHost::search_path() const {
  std::vector<fs::path> places;
  if (const char* list = std::getenv("RODEO_PLUGIN_PATH"); list != nullptr) {
    std::string_view rest = list;
    while (!rest.empty()) {
      const std::size_t colon = rest.find(':');
      if (colon != 0) places.emplace_back(rest.substr(0, colon));
      rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
    }
  }
  places.insert(places.end(), directories_.begin(), directories_.end());
  places.emplace_back(RODEO_PLUGIN_DIRECTORY);
  std::error_code failure;
  if (const fs::path command = fs::read_symlink("/proc/self/exe", failure); !failure) {
    const fs::path directory = command.parent_path();
    places.push_back(directory / "plugins");
    places.push_back(directory.parent_path() / "lib/rodeo/plugins");
    places.push_back(directory);
  }
  return places;
}

Result<fs::path> PluginHost::find(std::string_view name, const fs::path& base) const {
  std::error_code failure;
  if (name.find('/') != std::string_view::npos) {
    const fs::path path = base / fs::path(name);
    if (fs::is_regular_file(path, failure)) return fs::canonical(path, failure);
    return std::unexpected(Error{"base.plugin_not_found",
                                 fmt::format("there is no plug-in library {}", path.string()),
                                 {},
                                 "build it, or give the path of the library that you have built"});
  }
  std::string searched;
  for (const fs::path& place : search_path()) {
    for (const std::string& file : {fmt::format("lib{}.so", name), fmt::format("{}.so", name), std::string(name)}) {
      if (!std::string_view(file).ends_with(".so")) continue;
      if (fs::is_regular_file(place / file, failure)) return fs::canonical(place / file, failure);
    }
    searched += (searched.empty() ? "" : ", ") + place.string();
  }
  return std::unexpected(Error{"base.plugin_not_found",
                               fmt::format("plug-in `{}` was not found in {}", name, searched),
                               {},
                               "give its path (with a /), or add its directory to RODEO_PLUGIN_PATH"});
}

Result<PluginHost::Plugin> PluginHost::load(std::string_view name, const fs::path& base) {
  const fs::path path = RODEO_TRY(find(name, base));
  for (const Plugin& plugin : loaded_) {
    if (plugin.path == path) return plugin;
  }

  // Load lazily first: a plug-in for another ABI may lack symbols; its version is then a better message than the first
  // missing symbol.
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    return std::unexpected(Error{"base.plugin_unloadable",
                                 fmt::format("{} cannot be loaded: {}", path.string(), dl_reason()),
                                 {},
                                 "`ldd` shows what it lacks; a plug-in is a shared library for this machine"});
  }
  const void* abi = dlsym(library, "rodeo_plugin_abi");
  void* registration = dlsym(library, "rodeo_plugin_register");
  if (abi == nullptr || registration == nullptr) {
    dlclose(library);
    return std::unexpected(Error{"base.not_a_plugin",
                                 fmt::format("{} is a library, but not a plug-in of Rodeo", path.string()),
                                 {},
                                 "a plug-in defines RODEO_PLUGIN(registry) { ... }, see rodeo/plugin.h"});
  }
  const std::uint32_t version = *static_cast<const std::uint32_t*>(abi);
  if (version != kPluginAbi) {
    dlclose(library);
    return std::unexpected(Error{"base.plugin_abi",
                                 fmt::format("{} was built for ABI {}, this is ABI {}", path.string(), version, kPluginAbi),
                                 {},
                                 "rebuild it against the installed headers"});
  }
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
    std::string reason = dl_reason();
    dlclose(library);
    return std::unexpected(Error{"base.plugin_unloadable",
                                 fmt::format("{} cannot be loaded: {}", path.string(), reason),
                                 {},
                                 "a symbol is missing: rebuild it, and link it to what it uses"});
  }
  name_in_crashes(name, path.string(), library);
  const auto function = reinterpret_cast<void (*)(Registry&)>(registration);
  RODEO_TRY_WITHIN(registry_.add_library(path.string(), function), fmt::format("plug-in `{}`", name));
  return loaded_.emplace_back(Plugin{std::string(name), path});
}

}  // namespace rodeo::base
