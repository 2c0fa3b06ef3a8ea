// The common command line of all farm processes: control socket, signals, report, exit status.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/runtime_dir.h"
#include "base/terminal_text.h"
#include "cli/build_text.h"
#include "cli/farm.h"
#include "process/stop_signals.h"

namespace rodeo::cli {

Command& add_farm_verb(Command& farm, const std::string& name, const std::string& help, const std::string& table,
                       Result<ExitCode> (*run)(const FarmOptions&)) {
  auto options = std::make_shared<FarmOptions>();
  Command& verb = farm.verb(name, help);
  verb.option("CONFIG", options->file, fmt::format("Configuration with a {} table (TOML)", table)).value_name("CONFIG");
  verb.option("--seconds", options->seconds, "End after this time").value_name("S");
  verb.flag("--hold", options->hold, "Get ready, and wait for the start command");
  verb.option("--set", options->settings, "Set a key of the configuration").value_name("KEY=VALUE");
  verb.json_file(options->json_file);
  verb.run([options, run, name]() -> Result<ExitCode> {
    if (options->file.empty()) return usage_error("a configuration is missing", fmt::format("rodeo farm {} CONFIG", name));
    return run(*options);
  });
  return verb;
}

Result<ExitCode> run_farm_action(const FarmOptions& options, const FarmAction<farm::FarmProcess>& action) {
  if (options.hold && !action.control_socket)
    return std::unexpected(
        Error{"cli.usage", fmt::format("--hold: this {} has no control socket, so it cannot receive its run", action.kind),
              fmt::format("farm.{}.control", action.kind), "leave `control = false` out, or --hold"});
  RODEO_TRY(check_seconds(options.seconds, "leave it out to run until Ctrl-C"));
  process::outlive_listeners();
  std::optional<process::LineServer> control;
  if (action.control_socket) {
    const auto socket = RODEO_TRY(base::runtime_socket(farm::control_socket_name(action.name)));
    control.emplace(socket);
  }
  const process::StopSignals until_it_is_reported;
  const process::ProcessIdentity identity{
      .kind = action.kind, .name = action.name, .build = build_text(), .configuration_sha256 = action.configuration_sha256};
  process::LastResort last_resort(action.stop_limit, action.name);
  const std::unique_ptr<farm::FarmProcess> process = action.make();
  const farm::FarmRun run{.hold = options.hold,
                          .run_number = action.run_number,
                          .seconds = options.seconds,
                          .ending = action.ending,
                          .stop_limit = action.stop_limit,
                          .last_resort = &last_resort};
  const farm::FarmOutcome outcome =
      farm::run_farm_process(*process, identity, run, control ? &*control : nullptr, [&] { action.observe(*process); });
  if (outcome.left) {
    std::fprintf(stderr, "%s has ended; no run was started\n", action.name.c_str());
    return ExitCode::done;
  }
  const settings::Json report = process->report();
  say("{}", base::without_control_characters(action.report_text(report)));
  const Result<void> written = options.json_file.empty() ? Result<void>{} : write_json(options.json_file, report);
  if (!outcome.finished) {
    // The user aborted, and threads still use these objects: exit without destructors.
    std::fflush(nullptr);
    control.reset();
    ::_exit(static_cast<int>(ExitCode::failed));
  }
  RODEO_TRY(written);
  return action.exit_code(*process);
}

}  // namespace rodeo::cli
