// What the verbs of all kinds of process share: `rodeo VERB CONFIG`, and requests to a running process.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "process/service.h"
#include "settings/configuration.h"

namespace rodeo::cli {

/// The options of a verb that runs a process.
struct RunOptions {
  std::string file;
  std::vector<std::string> settings;
  std::optional<double> seconds;
  bool hold = false;
  std::string json_file;

  settings::ConfigurationSource source() const { return {.file = file, .overrides = settings}; }
};

/// Adds CONFIG, --seconds, --set, --json and, for kinds that live for one run, --hold.
void add_run_options(Command& verb, const process::ProcessKind& kind, RunOptions& options);

/// Errors of the command line: cli.usage (no configuration), cli.bad_value.
Result<void> check_run_options(const process::ProcessKind& kind, const RunOptions& options);

/// Runs the process to its end, prints its report on stderr, and writes it to the file of --json.
Result<ExitCode> run_process(std::unique_ptr<process::Service> service, const RunOptions& options);

/// The options of a verb that asks a running process.
struct AskOptions {
  std::string name;
  bool watch = false;
  OutputFormat format = OutputFormat::table;
};

/// Adds --name.
void add_name(Command& verb, const process::ProcessKind& kind, AskOptions& options);
/// Adds `status` with --watch, --name and -o. `show` prints the answer to `request()` as a table or as CSV; `first`: no
/// output stands above it.
Command& add_status(Command& noun, const process::ProcessKind& kind, const std::shared_ptr<AskOptions>& options,
                    std::function<Json()> request, std::function<Result<ExitCode>(Json status, bool first)> show);
/// Adds `stop`.
void add_stop(Command& noun, const process::ProcessKind& kind, const std::shared_ptr<AskOptions>& options);

}  // namespace rodeo::cli
