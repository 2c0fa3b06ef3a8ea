// What is kept of a run beside its events: its configuration and the versions of what made it in the free strings of each file, its
// verdict in run.json beside them (docs/formats/eventstorage-file.md).
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
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

/// Verdicts on runs by the files that they wrote. A directory is looked through once, as long as its files are asked for one after the other. One thread.
class RunRecords {
 public:
  /// The verdict on the run that wrote this file, if it lies beside it; of its files this one.
  std::optional<Json> that_wrote(const std::filesystem::path& file);

 private:
  void look_through(const std::filesystem::path& directory);

  std::optional<std::filesystem::path> directory_;
  struct Entry {
    std::size_t record = 0;
    Json file;
  };
  std::vector<Json> records_;  // without their files: there may be very many
  std::map<std::string, Entry> by_file_;
};

}  // namespace rodeo::readout
