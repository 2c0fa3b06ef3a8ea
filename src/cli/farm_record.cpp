// `rodeo farm record`: the recorder of a farm.
#include <fmt/format.h>

#include "cli/farm.h"
#include "cli/system.h"
#include "farm/recorder/recorder_process.h"
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

Result<ExitCode> record(const Options& options) {
  if (options.file.empty()) return usage_error("a configuration is missing", "rodeo farm record CONFIG");
  const auto loaded = load_recorder({.file = options.file, .overrides = options.settings});
  if (!loaded) return report_errors(loaded.error());
  const farm::RecorderPlan& plan = *loaded;
  process::StatusMetrics<farm::RecorderProcess::Shown> metrics(
      plan.metrics_listen, [](const auto& shown) { return farm::prometheus_text(shown); },
      {plan.settings.files.directory.string()});
  return run_farm_action(
      {.kind = "recorder",
       .name = plan.settings.name,
       .hold = options.hold,
       .control_socket = plan.control_socket,
       .configuration_sha256 = plan.configuration_sha256,
       .json_file = options.json_file,
       .run = {.hold = options.hold,
               .run_number = plan.settings.run_number,
               .seconds = options.seconds,
               .ending = "files are closed, what waits is answered"},
       .make = [&] { return std::make_unique<farm::RecorderProcess>(plan.settings); },
       .observe = [&](farm::FarmProcess& process) { metrics.show(static_cast<farm::RecorderProcess&>(process).shown()); },
       .report_text = farm::recorder_report_text,
       .exit_code =
           [](farm::FarmProcess& process) {
             const auto condition = static_cast<farm::RecorderProcess&>(process).condition();
             return condition == process::Condition::good ? ExitCode::done : ExitCode::partial;
           }});
}

}  // namespace

void add_farm_record(Command& farm) {
  auto options = std::make_shared<Options>();
  Command& verb = farm.verb("record", "Record events of filter nodes to files, one for each stream and luminosity block");
  verb.example("rodeo farm record examples/farm/recorder.toml", "until Ctrl-C")
      .example("rodeo farm record CONFIG --hold", "wait for the run's number on the control socket, as run control does");
  verb.option("CONFIG", options->file, "Configuration with a [farm.recorder] table (TOML)").value_name("CONFIG");
  verb.option("--seconds", options->seconds, "End after so many seconds").value_name("S");
  verb.flag("--hold", options->hold, "Get ready, and wait to be told the run");
  verb.option("--set", options->settings, "Set a key of the configuration").value_name("KEY=VALUE");
  verb.json_file(options->json_file);
  verb.paragraph(
      "An event is acknowledged when it is safe on disk (farm.recorder.sync), a second copy of an id only then too, and "
      "never written. A recorder "
      "that was killed is started again with the same run: it recovers the files that it left open, and knows which ids it "
      "has.");
  verb.paragraph(
      "Exit status 0: all that came is in closed files; 6: the disk was full or failed at the end, or files are not at "
      "their target yet.");
  verb.run([options] { return record(*options); });
}

}  // namespace rodeo::cli
