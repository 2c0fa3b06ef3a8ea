// What all processes of the farm share on the command line: control socket, signals, report, exit status.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/runtime_dir.h"
#include "cli/build_text.h"
#include "cli/farm.h"
#include "process/stop_signals.h"

namespace rodeo::cli {

Result<ExitCode> run_farm_action(const FarmAction& action) {
  if (action.hold && !action.control_socket)
    return std::unexpected(Error{
        "cli.usage", fmt::format("--hold: nobody could tell this {} its run, for it has no control socket", action.kind),
        fmt::format("farm.{}.control", action.kind), "leave `control = false` out, or --hold"});
  RODEO_TRY(check_seconds(action.run.seconds, "leave it out to run until Ctrl-C"));
  std::optional<process::LineServer> control;
  if (action.control_socket) {
    const auto socket = RODEO_TRY(base::runtime_socket(farm::control_socket_name(action.name)));
    control.emplace(socket);
  }
  const process::StopSignals until_it_is_reported;
  const process::ProcessIdentity identity{
      .kind = action.kind, .name = action.name, .build = build_text(), .configuration_sha256 = action.configuration_sha256};
  std::unique_ptr<farm::FarmProcess> process = action.make();
  const farm::FarmOutcome outcome = farm::run_farm_process(*process, identity, action.run, control ? &*control : nullptr,
                                                           [&] { action.observe(*process); });
  if (outcome.left) {
    std::fprintf(stderr, "%s has ended; no run was started\n", action.name.c_str());
    return ExitCode::done;
  }
  const settings::Json report = process->report();
  std::fputs(action.report_text(report).c_str(), stderr);
  const Result<void> written = action.json_file.empty() ? Result<void>{} : write_json(action.json_file, report);
  if (!outcome.finished) {
    // The user would not wait, and threads still work on what is here.
    std::fflush(nullptr);
    control.reset();
    ::_exit(static_cast<int>(ExitCode::failed));
  }
  RODEO_TRY(written);
  return action.exit_code(*process);
}

}  // namespace rodeo::cli
