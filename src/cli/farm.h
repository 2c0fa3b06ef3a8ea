// Verbs of `rodeo farm` that have a file of their own, and what all processes of the farm share on the command line.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "farm/run/farm_process.h"

namespace rodeo::cli {

void add_farm_filter(Command& farm);
void add_farm_record(Command& farm);
void add_farm_supervise(Command& farm);

/// A process of the farm from its control socket to its report.
struct FarmAction {
  std::string kind;  ///< "recorder"
  std::string name;
  bool hold = false;
  bool control_socket = true;
  std::string configuration_sha256;
  std::string json_file;
  farm::FarmRun run = {};
  /// Made while nobody asks yet; throws SetupError.
  std::function<std::unique_ptr<farm::FarmProcess>()> make;
  /// Called after each step, for metrics.
  std::function<void(farm::FarmProcess&)> observe;
  std::function<std::string(const settings::Json&)> report_text;
  std::function<ExitCode(farm::FarmProcess&)> exit_code;
};

Result<ExitCode> run_farm_action(const FarmAction& action);

}  // namespace rodeo::cli
