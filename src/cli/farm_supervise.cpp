// `rodeo farm supervise`: the supervisor of a farm.
#include <fmt/format.h>

#include "cli/farm.h"
#include "cli/system.h"
#include "farm/supervisor/supervisor_process.h"
#include "process/status_metrics.h"

namespace rodeo::cli {
namespace {

struct Options {
  std::string file;
  std::vector<std::string> settings;
  std::optional<double> seconds;
  std::string json_file;
  bool hold = false;
};

Result<ExitCode> supervise(const Options& options) {
  if (options.file.empty()) return usage_error("a configuration is missing", "rodeo farm supervise CONFIG");
  const auto loaded = load_supervisor({.file = options.file, .overrides = options.settings});
  if (!loaded) return report_errors(loaded.error());
  const farm::SupervisorPlan& plan = *loaded;
  process::StatusMetrics<farm::SupervisorStatus> metrics(plan.metrics_listen,
                                                         [](const auto& status) { return farm::prometheus_text(status); });
  return run_farm_action(
      {.kind = "supervisor",
       .name = plan.settings.name,
       .hold = options.hold,
       .control_socket = plan.control_socket,
       .configuration_sha256 = plan.configuration_sha256,
       .json_file = options.json_file,
       .run = {.hold = options.hold,
               .run_number = plan.settings.run_number,
               .seconds = options.seconds,
               .ending = "the trigger is held, what is under way is decided and cleared"},
       .make = [&] { return std::make_unique<farm::SupervisorProcess>(plan.settings); },
       .observe = [&](farm::FarmProcess& process) { metrics.show(static_cast<farm::SupervisorProcess&>(process).shown()); },
       .report_text = farm::supervisor_report_text,
       .exit_code =
           [](farm::FarmProcess& process) {
             const auto& supervisor = static_cast<farm::SupervisorProcess&>(process);
             if (supervisor.condition() == process::Condition::wrong) return ExitCode::failed;
             const auto& status = supervisor.shown();
             return status["readout_died"] + status.undecided + status.uncleared > 0 ? ExitCode::partial : ExitCode::done;
           }});
}

}  // namespace

void add_farm_supervise(Command& farm) {
  auto options = std::make_shared<Options>();
  Command& verb = farm.verb("supervise", "Give events to filter nodes, take their decisions, have readouts clear them");
  verb.example("rodeo farm supervise examples/farm/supervisor.toml", "until Ctrl-C")
      .example("rodeo farm supervise CONFIG --hold", "wait for the run's number on the control socket, as run control does");
  verb.option("CONFIG", options->file, "Configuration with a [farm.supervisor] table (TOML)").value_name("CONFIG");
  verb.option("--seconds", options->seconds, "End after so many seconds").value_name("S");
  verb.flag("--hold", options->hold, "Get ready, and wait to be told the run");
  verb.option("--set", options->settings, "Set a key of the configuration").value_name("KEY=VALUE");
  verb.json_file(options->json_file);
  verb.paragraph(
      "Runs until Ctrl-C (or SIGTERM), a limit, or, without a trigger authority, until all readouts have ended. The first "
      "Ctrl-C ends the run in "
      "order: the trigger is held, what is under way is decided and cleared (farm.supervisor.drain_time), nodes are told, "
      "the report prints.");
  verb.paragraph(
      "One that was killed is started again with the same configuration: nodes, readouts and recorders tell it where the "
      "run stands, and no event is "
      "lost.");
  verb.paragraph(
      "Exit status 0: each event was decided and cleared; 6: some were not, or no readout had them any more; 1: the books "
      "do not add up.");
  verb.run([options] { return supervise(*options); });
}

}  // namespace rodeo::cli
