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
                .ending = "its events are finished, new ones are refused",
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
      farm, "filter", "Builds whole events from the fragments that readouts keep, selects them, sends them to a recorder",
      "[farm.node]", filter);
  verb.example("rodeo farm filter examples/farm/node.toml", "until Ctrl-C, or the end of the run")
      .example("rodeo farm filter CONFIG --set farm.node.selection.type=python --set farm.node.selection.file=mine.py",
               "with your own selection");
  verb.paragraph(
      "The supervisor tells the node its run, readouts and recorders; the node needs only its own name. A killed node loses "
      "no event: its events are assigned again, built, and not selected a second time.");
  verb.paragraph(
      "Exit status 0: all assigned events are decided; 6: events were given up or lost, or decisions were not safe at "
      "the end; 1: the supervisor has another run or version.");
}

}  // namespace rodeo::cli
