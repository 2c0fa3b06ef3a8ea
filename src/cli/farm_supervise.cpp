// `rodeo farm supervise`: the supervisor of a farm.
#include <fmt/format.h>

#include "cli/farm.h"
#include "cli/system.h"
#include "farm/supervisor/supervisor_process.h"
#include "process/status_metrics.h"

namespace rodeo::cli {
namespace {

Result<ExitCode> supervise(const FarmOptions& options) {
  const auto loaded = load_supervisor({.file = options.file, .overrides = options.settings});
  if (!loaded) return report_errors(loaded.error());
  const farm::SupervisorPlan& plan = *loaded;
  process::StatusMetrics<farm::SupervisorStatus> metrics(plan.metrics_listen,
                                                         [](const auto& status) { return farm::prometheus_text(status); });
  return run_farm_action<farm::SupervisorProcess>(
      options, {.kind = "supervisor",
                .name = plan.settings.name,
                .control_socket = plan.control_socket,
                .configuration_sha256 = plan.configuration_sha256,
                .run_number = plan.settings.run_number,
                .ending = "the trigger is held, events under way are decided and cleared",
                .stop_limit = plan.settings.stop_limit,
                .make = [&] { return std::make_unique<farm::SupervisorProcess>(plan.settings); },
                .observe = [&](farm::SupervisorProcess& process) { metrics.show(process.shown()); },
                .report_text = farm::supervisor_report_text,
                .exit_code =
                    [](farm::SupervisorProcess& process) {
                      if (process.condition() == process::Condition::wrong) return ExitCode::failed;
                      const auto& status = process.shown();
                      return status["readout_died"] + status.undecided + status.uncleared > 0 ? ExitCode::partial
                                                                                              : ExitCode::done;
                    }});
}

}  // namespace

void add_farm_supervise(Command& farm) {
  Command& verb =
      add_farm_verb(farm, "supervise", "Assigns events to filter nodes, takes their decisions, tells readouts to clear them",
                    "[farm.supervisor]", supervise);
  verb.example("rodeo farm supervise examples/farm/supervisor.toml", "until Ctrl-C")
      .example("rodeo farm supervise CONFIG --hold", "wait for the run's number on the control socket, as run control does");
  verb.paragraph(
      "Runs until Ctrl-C (or SIGTERM), a limit, or, without a trigger authority, until all readouts have ended. The first "
      "Ctrl-C ends the run in order: the trigger is held, events under way are decided and cleared "
      "(farm.supervisor.drain_time), nodes get the end of the run, and the report is printed.");
  verb.paragraph(
      "After a kill, start the supervisor again with the same configuration: nodes, readouts and recorders tell it the "
      "state of the run, and no event is lost.");
  verb.paragraph(
      "Exit status 0: every event was decided and cleared; 6: some were not, or no readout had them any more; 1: the counts "
      "do not add up.");
}

}  // namespace rodeo::cli
