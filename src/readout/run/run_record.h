// Records of a run in addition to its events. The free strings of each file have the configuration and the versions of the
// software; run.json in the same directory has the verdict (docs/reference/formats/eventstorage-file.md).
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

/// Every loaded value of the run and the readout, and the plug-ins with the hashes of their libraries.
std::vector<std::string> run_strings(const Configuration& configuration, const base::PluginHost& plugins);

/// Writes the report, with the values of `strings`, into each directory that has files of the run: as run.json or, if that
/// name is in use, as run-2.json and so on. Error file.write.
Result<void> write_run_files(const Json& report, const std::vector<FragmentConsumer::File>& files,
                             const std::vector<std::string>& strings);

/// True if a file of this name is a report of a run.
bool is_run_record(const std::filesystem::path& path);

/// The reason why no report in the directory names this file. For an unclosed file, it names the missing report.
std::string why_no_record(const std::filesystem::path& file);

/// Finds reports of runs by their files. A directory is read once if its files are asked for in a row. One thread.
class RunRecords {
 public:
  /// The report of the run that wrote this file, if it is in the same directory. It lists only this file of the run.
  std::optional<Json> report_of(const std::filesystem::path& file);

 private:
  void read_directory(const std::filesystem::path& directory);

  std::optional<std::filesystem::path> directory_;
  struct Entry {
    std::size_t record = 0;
    Json file;
  };
  std::vector<Json> records_;  // without their lists of files, which may be long
  std::map<std::string, Entry> by_file_;
};

}  // namespace rodeo::readout
