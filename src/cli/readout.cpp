// `rodeo readout`: runs the software ROD that a configuration describes, and talks to one that is running.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "cli/readout_action.h"
#include "cli/verbs.h"
#include "control/readout_control.h"
#include "control/readout_settings.h"

namespace rodeo::cli {
namespace {

struct RunOptions {
  std::string file;
  std::vector<std::string> settings;
  std::optional<double> seconds;
  std::optional<std::uint64_t> events;
  std::optional<std::string> fail_on_loss;
  std::string json_file;
};

struct TalkOptions {
  std::string name;
  std::string fid;
  OutputFormat format = OutputFormat::table;
};

Result<ExitCode> run(const RunOptions& options) {
  if (options.file.empty()) {
    return std::unexpected(Error{"cli.usage", "a configuration is missing", "",
                                 "rodeo readout CONFIG, or one of the verbs: rodeo readout --help"});
  }
  auto plan = control::load_readout({.file = options.file, .overrides = options.settings});
  if (!plan) return report_errors(plan.error());
  if (options.events == 0u) {
    return std::unexpected(Error{"cli.bad_value", "--events 0: a run of no events", "",
                                 "give at least 1, or leave it out to run until Ctrl-C or the end of the input"});
  }
  if (options.fail_on_loss && !options.fail_on_loss->empty()) {
    auto fraction = detail::read(*options.fail_on_loss, plan->settings.fail_on_loss);
    if (!fraction || !(plan->settings.fail_on_loss >= 0 && plan->settings.fail_on_loss <= 1)) {
      return std::unexpected(Error{"cli.bad_value",
                                   fmt::format("--fail-on-loss={}: expected a fraction, 0 to 1", *options.fail_on_loss), "",
                                   "0.01 is one in a hundred; --fail-on-loss alone lets nothing be lost"});
    }
  } else if (options.fail_on_loss) {
    plan->settings.fail_on_loss = 0;
  }
  return run_to_report(*plan, {.seconds = options.seconds, .fragments = options.events}, options.json_file, {});
}

Result<ExitCode> show_status(const TalkOptions& options) {
  const auto status = control::ask_readout(options.name, Json::object({{"command", "status"}}));
  if (!status) return std::unexpected(status.error());
  if (options.format == OutputFormat::json) {
    print(status->dump() + "\n");
    return ExitCode::done;
  }
  const auto number = [&](std::string_view group, std::string_view key) {
    const Json* member = status->find(group);
    const Json* value = member != nullptr && !key.empty() ? member->find(key) : member;
    return value != nullptr ? *value : Json();
  };
  const auto rounded = [&](std::string_view group, std::string_view key, const char* format) {
    const Json value = number(group, key);
    return Cell(value, value.is_number() ? fmt::format(fmt::runtime(format), value.number()) : "");
  };
  Properties properties;
  properties.add("name", "name", number("run", "name"));
  properties.add("run", "run_number", number("run", "number"));
  properties.add("phase", "phase", number("phase", ""));
  properties.add("seconds", "seconds", rounded("run", "seconds", "{:.1f}"));
  properties.add("trigger rate [Hz]", "trigger_rate_hz", rounded("trigger_rate_hz", "", "{:.1f}"));
  properties.add("dead time fraction", "dead_time_fraction", rounded("dead_time_fraction", "", "{:.4f}"));
  properties.add("fragments", "fragments", number("fragments", "built"));
  properties.add("incomplete", "incomplete", number("fragments", "incomplete"));
  properties.add("chunks built", "chunks_built", number("chunks", "built"));
  properties.add("bytes written", "bytes_written", number("bytes", "written"));
  properties.add("limited by", "limited_by", number("limited_by_now", ""));
  properties.print(options.format);
  return ExitCode::done;
}

Result<ExitCode> list_links(const TalkOptions& options) {
  const auto status = control::ask_readout(options.name, Json::object({{"command", "status"}}));
  if (!status) return std::unexpected(status.error());
  Table table({{"ROB", "source_id"},
               {"link", "fid"},
               {"state", "state"},
               {"by policy", "removed_by_policy"},
               {"chunks", "chunks"},
               {"missing", "missing"},
               {"bad", "bad"}});
  const Json* robs = status->find("robs");
  if (robs != nullptr) {
    for (const Json& rob : robs->elements()) {
      const Json* links = rob.find("links");
      if (links == nullptr) continue;
      for (const Json& link : links->elements()) {
        const auto cell = [&](const char* key) { return link.find(key) != nullptr ? *link.find(key) : Json(); };
        const bool active = cell("state").string() == "active";
        table.add_row({Cell(*rob.find("source_id")), Cell(cell("fid")),
                       Cell(cell("state"), "", active ? Style::good : Style::warning),
                       Cell(cell("removed_by_policy"), cell("removed_by_policy").boolean() ? "yes" : "no"),
                       Cell(cell("chunks")), Cell(cell("missing")), Cell(cell("bad"))});
      }
    }
  }
  table.print(options.format);
  return ExitCode::done;
}

Result<ExitCode> ask(const TalkOptions& options, const char* command) {
  Json request = Json::object({{"command", command}});
  if (!options.fid.empty()) request["fid"] = options.fid;
  const auto done = control::ask_readout(options.name, request);
  if (!done) return std::unexpected(done.error());
  return ExitCode::done;
}

}  // namespace

void add_readout(Command& root) {
  auto options = std::make_shared<RunOptions>();
  Command& readout = root.verb("readout", "Run the software ROD, or talk to a running one");
  readout.example("rodeo readout examples/demo.toml --seconds 10", "run what a configuration describes, for 10 s")
      .example("rodeo readout run.toml --set readout.input.rate=50kHz --json -", "with another rate; the report as JSON")
      .example("rodeo readout status --name demo", "how a running readout is doing")
      .example("rodeo readout link remove 0x1000000000540000 --name demo", "take a link out of the build while it runs");
  readout.option("CONFIG", options->file, "Configuration file (TOML). A file with the name of a verb below: write ./status")
      .value_name("CONFIG");
  readout.option("--seconds", options->seconds, "End the run after so many seconds").value_name("S");
  readout.option("--events", options->events, "End the run once so many fragments are built; some more are under way then");
  readout
      .option("--set", options->settings,
              "Set a key of the configuration: KEY=VALUE; a consumer goes by position or name, "
              "readout.consumer[writer].directory")
      .value_name("KEY=VALUE");
  readout
      .option("--fail-on-loss", options->fail_on_loss,
              "Exit status 6 if more than this fraction is lost (0.01: one in a hundred; alone: anything); instead of "
              "readout.fail_on_loss")
      .value_name("[=FRACTION]");
  readout.json_file(options->json_file);
  readout.paragraph(
      "Runs until Ctrl-C (or SIGTERM), the end of the input, or a limit. The first Ctrl-C ends the run in order: the input "
      "stops, buffers drain, files close, the report prints. A second one changes nothing, a third aborts.");
  readout.paragraph(
      "Without run.number the run takes the next number that no file in the directories of its file writers has.");
  readout.paragraph(
      "Exit status 0: the run ended as it should, whatever was lost, unless --fail-on-loss sets a limit; 6: more than that "
      "was lost; 1: a part failed (disk full, ...); 7: the verifying processor found wrong bytes. The last line of the "
      "report "
      "says what was lost.");
  readout.run([options] { return run(*options); });

  auto talk = std::make_shared<TalkOptions>();
  const auto with_name = [talk](Command& verb) {
    verb.option("--name", talk->name, "Which readout (readout.name); needed if several run").value_name("NAME");
  };
  Command& status = readout.verb("status", "How a running readout is doing");
  status.example("rodeo readout status -o json", "everything there is, for programs");
  with_name(status);
  status.output(talk->format);
  status.run([talk] { return show_status(*talk); });

  Command& stop = readout.verb("stop", "End a running readout in order, as Ctrl-C does");
  with_name(stop);
  stop.run([talk] { return ask(*talk, "stop"); });

  Command& link = readout.verb("link", "Links of a running readout");
  Command& list = link.verb("list", "Every link with its state and counts");
  with_name(list);
  list.output(talk->format);
  list.run([talk] { return list_links(*talk); });
  Command& remove = link.verb("remove", "Take a link out of the build: events no longer wait for it");
  remove.option("FID", talk->fid, "FELIX identifier of the link").required();
  with_name(remove);
  remove.run([talk] { return ask(*talk, "link_remove"); });
  Command& restore = link.verb("restore", "Take a removed link back into the build");
  restore.option("FID", talk->fid, "FELIX identifier of the link").required();
  with_name(restore);
  restore.run([talk] { return ask(*talk, "link_restore"); });
}

}  // namespace rodeo::cli
