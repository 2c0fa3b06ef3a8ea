// Verbs of `rodeo farm` that have their own files, and the common command line of all farm processes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "farm/run/farm_process.h"

namespace rodeo::cli {

void add_farm_filter(Command& farm);
void add_farm_record(Command& farm);
void add_farm_supervise(Command& farm);

/// The options of each verb.
struct FarmOptions {
  std::string file;
  std::vector<std::string> settings;
  std::optional<double> seconds;
  std::string json_file;
  bool hold = false;
};

/// Adds a verb with these options; `table` is its table in the configuration.
Command& add_farm_verb(Command& farm, const std::string& name, const std::string& help, const std::string& table,
                       Result<ExitCode> (*run)(const FarmOptions&));

/// A process of the farm from its control socket to its report.
template <typename Process>
struct FarmAction {
  std::string kind;  ///< "recorder"
  std::string name;
  bool control_socket = true;
  std::string configuration_sha256;
  std::uint32_t run_number = 0;  ///< 0: the start command gives it
  std::string ending;            ///< the effect of a first Ctrl-C, for people
  std::chrono::nanoseconds stop_limit = process::kStopLimit;
  /// Makes the process before the control socket is served; throws SetupError.
  std::function<std::unique_ptr<Process>()> make;
  /// Called after each step, for metrics.
  std::function<void(Process&)> observe;
  std::function<std::string(const settings::Json&)> report_text;
  std::function<ExitCode(Process&)> exit_code;
};

Result<ExitCode> run_farm_action(const FarmOptions& options, const FarmAction<farm::FarmProcess>& action);

template <typename Process>
Result<ExitCode> run_farm_action(const FarmOptions& options, FarmAction<Process> action) {
  const auto mine = [](farm::FarmProcess& process) -> Process& { return static_cast<Process&>(process); };
  return run_farm_action(options,
                         FarmAction<farm::FarmProcess>{
                             .kind = std::move(action.kind),
                             .name = std::move(action.name),
                             .control_socket = action.control_socket,
                             .configuration_sha256 = std::move(action.configuration_sha256),
                             .run_number = action.run_number,
                             .ending = std::move(action.ending),
                             .stop_limit = action.stop_limit,
                             .make = std::move(action.make),
                             .observe = [&](farm::FarmProcess& process) { action.observe(mine(process)); },
                             .report_text = std::move(action.report_text),
                             .exit_code = [&](farm::FarmProcess& process) { return action.exit_code(mine(process)); }});
}

}  // namespace rodeo::cli
