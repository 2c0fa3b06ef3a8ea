// `rodeo farm filter`: a filter node of a farm.
#include <fmt/format.h>

#include "cli/farm.h"
#include "cli/python.h"
#include "cli/system.h"
#include "farm/node/node_process.h"
#include "farm/selection/register.h"
#include "process/status_metrics.h"

namespace rodeo::cli {
namespace {

Result<ExitCode> filter(const FarmOptions& options) {
  const auto loaded = load_node({.file = options.file, .overrides = options.settings});
  if (!loaded) return report_errors(loaded.error());
  const farm::NodePlan& plan = loaded->plan;
  if (plan.settings.selection.type == "python") farm::set_python_command(RODEO_TRY(python_words()));
  process::StatusMetrics<farm::NodeStatus> metrics(plan.metrics_listen,
                                                   [](const auto& status) { return farm::prometheus_text(status); });
  return run_farm_action<farm::NodeProcess>(
      options, {.kind = "node",
                .name = plan.settings.name,
                .control_socket = plan.control_socket,
                .configuration_sha256 = plan.configuration_sha256,
                .ending = "events that it has are finished, no more are taken",
                .stop_limit = plan.settings.stop_limit,
                .make = [&] { return std::make_unique<farm::NodeProcess>(plan.settings, loaded->library->registry()); },
                .observe = [&](farm::NodeProcess& process) { metrics.show(process.shown()); },
                .report_text = farm::node_report_text,
                .exit_code =
                    [](farm::NodeProcess& process) {
                      const auto condition = process.condition();
                      if (condition == process::Condition::aborted) return ExitCode::failed;
                      return condition == process::Condition::good ? ExitCode::done : ExitCode::partial;
                    }});
}

}  // namespace

void add_farm_filter(Command& farm) {
  Command& verb = add_farm_verb(
      farm, "filter", "Build whole events of the fragments that readouts keep, select them, send them to a recorder",
      "[farm.node]", filter);
  verb.example("rodeo farm filter examples/farm/node.toml", "until Ctrl-C, or the end of the run")
      .example("rodeo farm filter CONFIG --set farm.node.selection.type=python --set farm.node.selection.file=mine.py",
               "with a selection of your own");
  verb.paragraph(
      "Run, readouts and recorders are told by the supervisor; a node needs to know its name alone. A node that was killed "
      "loses nothing: "
      "its events are assigned again, and built without being selected a second time.");
  verb.paragraph(
      "Exit status 0: all that it was assigned is decided; 6: events were given up or lost, or decisions were not safe at "
      "the end; 1: the "
      "supervisor has another run or version.");
}

}  // namespace rodeo::cli
