// `rodeo events monitor`: a user's Python code fills histograms from sampled events or files (python/rodeo/monitoring/).
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "cli/events.h"
#include "cli/python.h"

namespace rodeo::cli {
namespace {

struct EventsMonitorOptions {
  std::string file;
  std::string name;
  readout::EventSubscriberSettings from;
  std::vector<std::string> input;
  std::uint64_t events = 0;
  std::vector<std::string> save;
  bool no_save = false;
  std::uint64_t port = 0;
  bool no_page = false;
  std::chrono::nanoseconds hang = std::chrono::seconds(5);
  std::string json;
};

Result<ExitCode> monitor(const EventsMonitorOptions& options) {
  std::vector<std::string> arguments{options.file,
                                     "--name",
                                     options.name,
                                     "--events",
                                     std::to_string(options.events),
                                     "--port",
                                     std::to_string(options.port),
                                     "--json",
                                     options.json,
                                     "--hang",
                                     fmt::format("{}", std::chrono::duration<double>(options.hang).count())};
  if (!options.from.stream.empty()) {
    if (!options.name.empty() || !options.input.empty()) {
      return usage_error(
          "--from (a readout on the network), --name (one on this machine) and --input (a file) exclude each other",
          "give one of them");
    }
    arguments.insert(arguments.end(), {"--from", options.from.stream, "--bus", options.from.bus, "--provider",
                                       options.from.provider, "--secret-file", options.from.secret_file});
  }
  for (const std::string& file : options.input) arguments.insert(arguments.end(), {"--input", file});
  for (const std::string& file : options.save) arguments.insert(arguments.end(), {"--save", file});
  if (options.no_save) arguments.emplace_back("--no-save");
  if (options.no_page) arguments.emplace_back("--no-page");
  if (base::log_level() == base::LogLevel::debug) arguments.emplace_back("--debug");
  return std::unexpected(become_python("rodeo.monitoring", arguments));
}

}  // namespace

void add_events_monitor(Command& events) {
  auto options = std::make_shared<EventsMonitorOptions>();
  Command& verb = events.verb("monitor", "Fills histograms from sampled events with your Python code");
  verb.example("rodeo events monitor examples/monitor.py", "from the readout on this machine, in the terminal and on a page")
      .example("rodeo events monitor my.py --from readout.publish --bus /shared/bus", "from a readout on another host")
      .example("rodeo events monitor my.py --input run7.data", "the same monitors over the events of a finished run")
      .example("rodeo events monitor my.py --save shift.root --save shift.h5", "files for the histograms at the end");
  verb.paragraph(
      "The readout needs an `event_sampler` among its consumers, or with --from a consumer `publish`. Monitors never slow "
      "the readout: events that they do not take in time are left out and counted. A monitor that throws is named and "
      "continues with the next event; a monitor that hangs is restarted.");
  verb.option("FILE", options->file, "Python file with monitors: functions with @rodeo.monitor").required();
  verb.option("--name", options->name, "Name of the readout; needed if several run").value_name("NAME");
  add_event_source(verb, options->from);
  verb.option("--input", options->input, "Data files instead of a readout; a pattern in quotes").value_name("FILE");
  verb.option("--events", options->events, "End after N events; 0: with the run, the files, or Ctrl-C").value_name("N");
  verb.option("--save", options->save, "File for the histograms at the end, .root or .h5 (default: FILE.root and FILE.h5)")
      .value_name("FILE");
  verb.flag("--no-save", options->no_save, "Save nothing");
  verb.option("--port", options->port, "Port of the page on 127.0.0.1; 0: any free port").value_name("PORT");
  verb.flag("--no-page", options->no_page, "Show the terminal view only");
  verb.duration("--hang", options->hang, "Time limit of a monitor for one event; beyond it, the monitor hangs");
  verb.json_file(options->json);
  verb.run([options] { return monitor(*options); });
}

}  // namespace rodeo::cli
