// `rodeo farm record`: the recorder of a farm.
#include <fmt/format.h>

#include "cli/farm.h"
#include "cli/system.h"
#include "farm/recorder/recorder_process.h"
#include "process/status_metrics.h"

namespace rodeo::cli {
namespace {

Result<ExitCode> record(const FarmOptions& options) {
  const auto loaded = load_recorder({.file = options.file, .overrides = options.settings});
  if (!loaded) return report_errors(loaded.error());
  const farm::RecorderPlan& plan = *loaded;
  process::StatusMetrics<farm::RecorderProcess::Shown> metrics(
      plan.metrics_listen, [](const auto& shown) { return farm::prometheus_text(shown); },
      {plan.settings.files.directory.string()});
  return run_farm_action<farm::RecorderProcess>(
      options, {.kind = "recorder",
                .name = plan.settings.name,
                .control_socket = plan.control_socket,
                .configuration_sha256 = plan.configuration_sha256,
                .run_number = plan.settings.run_number,
                .ending = "files are closed, waiting requests are answered",
                .stop_limit = plan.settings.stop_limit,
                .make = [&] { return std::make_unique<farm::RecorderProcess>(plan.settings); },
                .observe = [&](farm::RecorderProcess& process) { metrics.show(process.shown()); },
                .report_text = farm::recorder_report_text,
                .exit_code =
                    [](farm::RecorderProcess& process) {
                      const auto condition = process.condition();
                      return condition == process::Condition::good ? ExitCode::done : ExitCode::partial;
                    }});
}

}  // namespace

void add_farm_record(Command& farm) {
  Command& verb =
      add_farm_verb(farm, "record", "Records events of filter nodes to files, one for each stream and luminosity block",
                    "[farm.recorder]", record);
  verb.example("rodeo farm record examples/farm/recorder.toml", "until Ctrl-C")
      .example("rodeo farm record CONFIG --hold", "wait for the run's number on the control socket, as run control does");
  verb.paragraph(
      "The recorder acknowledges an event when it is safe on disk (farm.recorder.sync). A second copy of an id is never "
      "written; it is acknowledged when the first is safe. After a kill, start the recorder again with the same run: it "
      "recovers the files that it left open, and knows the ids in them.");
  verb.paragraph(
      "Exit status 0: all events that arrived are in closed files; 6: the disk was full or failed at the end, or files are "
      "not at their target yet.");
}

}  // namespace rodeo::cli
