// What is kept of a run beside its events: its configuration and the versions of what made it in the free strings of each file, its
// verdict in run.json beside them (docs/formats/eventstorage-file.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/plugin_host.h"
#include "readout/run_report.h"
#include "settings/configuration.h"
#include "settings/json.h"

namespace rodeo::readout {

using settings::Configuration;
using settings::Json;

/// Keys of free strings.
inline constexpr std::string_view kSoftwareKey = "Rodeo-Software";
inline constexpr std::string_view kPluginsKey = "Rodeo-Plugins";
inline constexpr std::string_view kConfigurationKey = "Rodeo-Configuration";
inline constexpr std::string_view kConfigurationHashKey = "Rodeo-Configuration-SHA256";

/// Every value of the run and the readout as it was loaded, and the plug-ins with the hashes of their libraries.
std::vector<std::string> run_strings(const Configuration& configuration, const base::PluginHost& plugins);

/// Writes the report into each directory that has files of the run, with what `strings` say: as run.json, or, where another run has that name, as
/// run-2.json and so on. Error file.write.
Result<void> write_run_files(const Json& report, const std::vector<FragmentConsumer::File>& files,
                             const std::vector<std::string>& strings);

/// True if a file of this name is such a report.
bool is_run_record(const std::filesystem::path& path);

/// Why no report beside it knows this file: the name that its report would have there, for one that was not closed.
std::string why_no_record(const std::filesystem::path& file);

/// The verdict on the run that wrote this file, if it lies beside it.
std::optional<Json> run_that_wrote(const std::filesystem::path& file);

}  // namespace rodeo::readout
