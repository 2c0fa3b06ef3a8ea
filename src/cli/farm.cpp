// `rodeo farm`: builds, filters and records whole events.
#include "cli/process_verbs.h"
#include "cli/python.h"
#include "cli/system.h"
#include "cli/verbs.h"
#include "farm/node/service.h"
#include "farm/recorder/service.h"
#include "farm/selection/register.h"
#include "farm/supervisor/service.h"
#include "readout/library.h"

namespace rodeo::cli {
namespace {

Result<ExitCode> supervise(const RunOptions& options) {
  const auto configuration = load_supervisor(options.source());
  if (!configuration) return report_errors(configuration.error());
  return run_process(std::make_unique<farm::SupervisorService>(*configuration), options);
}

Result<ExitCode> filter(const RunOptions& options) {
  const auto loaded = load_node(options.source());
  if (!loaded) return report_errors(loaded.error());
  if (loaded->configuration.settings.selection.type == "python") farm::set_python_command(RODEO_TRY(python_words()));
  return run_process(std::make_unique<farm::NodeService>(loaded->configuration, loaded->library->registry()), options);
}

Result<ExitCode> record(const RunOptions& options) {
  const auto configuration = load_recorder(options.source());
  if (!configuration) return report_errors(configuration.error());
  return run_process(std::make_unique<farm::RecorderService>(*configuration), options);
}

Command& add_process(Command& farm, const process::ProcessKind& kind, const std::string& help,
                     Result<ExitCode> (*run)(const RunOptions&)) {
  auto options = std::make_shared<RunOptions>();
  Command& verb = farm.verb(std::string(kind.verb.substr(kind.verb.find(' ') + 1)), help);
  add_run_options(verb, kind, *options);
  verb.run([options, run, kind]() -> Result<ExitCode> {
    RODEO_TRY(check_run_options(kind, *options));
    return run(*options);
  });
  return verb;
}

void add_supervise(Command& farm) {
  Command& verb =
      add_process(farm, process::kSupervisor,
                  "Assigns events to filter nodes, takes their decisions, tells readouts to clear them", supervise);
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

void add_filter(Command& farm) {
  Command& verb = add_process(
      farm, process::kNode,
      "Builds whole events from the fragments that readouts keep, selects them, sends them to a recorder", filter);
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

void add_record(Command& farm) {
  Command& verb = add_process(farm, process::kRecorder,
                              "Records events of filter nodes to files, one for each stream and luminosity block", record);
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

}  // namespace

void add_farm(Command& root) {
  readout::add_default_library(farm::register_selections);
  Command& farm = root.verb("farm", "Builds, filters and records whole events");
  add_supervise(farm);
  add_filter(farm);
  add_record(farm);
}

}  // namespace rodeo::cli
