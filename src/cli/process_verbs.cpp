#include "cli/process_verbs.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "base/terminal_text.h"
#include "cli/build_text.h"
#include "cli/watch.h"
#include "process/control_request.h"
#include "process/service_run.h"

namespace rodeo::cli {

void add_run_options(Command& verb, const process::ProcessKind& kind, RunOptions& options) {
  verb.option("CONFIG", options.file, fmt::format("Configuration with a [{}] table (TOML)", kind.table))
      .value_name("CONFIG");
  verb.option("--seconds", options.seconds, "End the run after this time").value_name("S");
  if (kind.one_run) verb.flag("--hold", options.hold, "Get ready, and wait for the start command");
  verb.option("--set", options.settings, "Set a key of the configuration").value_name("KEY=VALUE");
  verb.json_file(options.json_file);
}

Result<void> check_run_options(const process::ProcessKind& kind, const RunOptions& options) {
  if (options.file.empty())
    return usage_error("a configuration is missing", fmt::format("rodeo {0} CONFIG, or: rodeo {0} --help", kind.verb));
  return check_seconds(options.seconds, "leave it out to run until Ctrl-C or the end of the input");
}

Result<ExitCode> run_process(std::unique_ptr<process::Service> service, const RunOptions& options) {
  const auto write = [&](const process::Service::Report& report) -> Result<void> {
    say("{}", base::without_control_characters(report.text));
    return options.json_file.empty() ? Result<void>{} : write_json(options.json_file, report.json);
  };
  process::ServiceRun run(std::move(service),
                          {.hold = options.hold, .seconds = options.seconds, .build = build_text(), .write = write});
  return run.run();
}

void add_name(Command& verb, const process::ProcessKind& kind, AskOptions& options) {
  verb.option("--name", options.name, fmt::format("Name of the {} ({}.name); needed if several run", kind.name, kind.table))
      .value_name("NAME");
}

Command& add_status(Command& noun, const process::ProcessKind& kind, const std::shared_ptr<AskOptions>& options,
                    std::function<Json()> request, std::function<Result<ExitCode>(Json status, bool first)> show) {
  Command& verb = noun.verb("status", fmt::format("Shows the state of a running {}", kind.name));
  verb.flag("--watch", options->watch, "Repeat each second; with -o json one line each time");
  add_name(verb, kind, *options);
  verb.output(options->format);
  verb.run([options, kind, request = std::move(request), show = std::move(show)]() -> Result<ExitCode> {
    std::optional<std::chrono::nanoseconds> interval;
    if (options->watch) interval = std::chrono::seconds{1};
    bool known = false;
    const auto outcome = watch(interval, options->format, [&](bool first) -> Result<ExitCode> {
      auto status = RODEO_TRY(process::ask_process(kind, options->name, request()));
      known = true;
      if (options->format == OutputFormat::json) {
        print(status.dump(options->watch ? 0 : 2) + "\n");
        return ExitCode::done;
      }
      if (!first && options->format == OutputFormat::table) print("\n");
      return show(std::move(status), first);
    });
    if (outcome || !known) return outcome;
    say("the run is over\n");
    return ExitCode::done;
  });
  return verb;
}

void add_stop(Command& noun, const process::ProcessKind& kind, const std::shared_ptr<AskOptions>& options) {
  Command& verb = noun.verb("stop", fmt::format("Ends a running {} in order, as Ctrl-C does", kind.name));
  add_name(verb, kind, *options);
  verb.run([options, kind]() -> Result<ExitCode> {
    RODEO_TRY(process::ask_process(kind, options->name, Json::object({{"command", "stop"}})));
    return ExitCode::done;
  });
}

}  // namespace rodeo::cli
