// `rodeo readout`: runs the software ROD of a configuration, and talks to a running one.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/units.h"
#include "cli/readout_action.h"
#include "cli/readout_database.h"
#include "cli/system.h"
#include "cli/verbs.h"
#include "process/control_request.h"

namespace rodeo::cli {

using process::ask_process;

namespace {

struct ReadoutOptions : RunOptions {
  std::optional<std::uint64_t> events;
  std::optional<std::string> fail_on_loss;
  std::string database;
};

struct StartOptions {
  std::uint64_t number = 0;
  std::string type;
};

/// A run with number and report in a database.
Result<ExitCode> run_of_database(readout::ReadoutConfiguration& configuration, const ReadoutOptions& options) {
  if (options.hold)
    return usage_error("--database with --hold: with --hold the start command gives the number", "leave one of them out");
  if (!configuration.numbered) {
    return value_error(fmt::format("--database gives the run its number, and so does run.number = {}",
                                   configuration.settings.run.run_number),
                       "leave run.number out, or --database");
  }
  const auto number = RODEO_TRY(number_of_database(options.database, configuration.settings.run.run_number));
  configuration.settings.run.run_number = number;
  configuration.numbered = false;
  Json report;
  const auto ended = run_readout(configuration, options,
                                 {.fragments = options.events, .after = [&](const readout::RunReport&, const Json& json) {
                                    report = json;
                                    return true;
                                  }});
  if (report.is_null()) return ended;
  const auto recorded = report_to_database(options.database, configuration.settings.name, number, report);
  if (!ended || *ended != ExitCode::done) return ended;
  return recorded;
}

Result<ExitCode> run(const ReadoutOptions& options) {
  RODEO_TRY(check_run_options(process::kReadout, options));
  auto configuration = load_readout(options.source());
  if (!configuration) return report_errors(configuration.error());
  if (options.events == 0u) {
    return value_error("--events 0: a run without events",
                       "give at least 1, or leave it out to run until Ctrl-C or the end of the input");
  }
  if (options.fail_on_loss && !options.fail_on_loss->empty()) {
    auto fraction = detail::read(*options.fail_on_loss, configuration->settings.fail_on_loss);
    if (!fraction || !(configuration->settings.fail_on_loss >= 0 && configuration->settings.fail_on_loss <= 1)) {
      return value_error(fmt::format("--fail-on-loss={}: expected a fraction, 0 to 1", *options.fail_on_loss),
                         "0.01 is one in a hundred; --fail-on-loss alone allows no loss");
    }
  } else if (options.fail_on_loss) {
    configuration->settings.fail_on_loss = 0;
  }
  if (!options.database.empty()) return run_of_database(*configuration, options);
  return run_readout(*configuration, options, {.fragments = options.events});
}

/// Counters as "late 12, ring_full 3"; programs get the object.
Cell counters_cell(const Json& counters) {
  std::string text;
  for (const auto& [name, value] : counters.members()) {
    if (value.number() > 0) text += fmt::format("{}{} {:.0f}", text.empty() ? "" : ", ", name, value.number());
  }
  return {counters, text.empty() ? "nothing" : text, text.empty() ? Style::good : Style::bad};
}

/// The losses whose total is not known: those of cards, links and recordings.
Json lost_before(const Json& losses) {
  Json counters = Json::object();
  for (const Json& loss : losses.elements()) {
    if (member(loss, "of").is_null()) counters[member(loss, "what").string()] = member(loss, "lost");
  }
  return counters;
}

/// Its place is, or was, not proven.
bool doubtful(const Json& link) { return member(link, "in_doubt").number() > 0 || member(link, "out_of_step").boolean(); }

std::string named(const Json& link) {
  const std::string& name = member(link, "name").string();
  return member(link, "fid").string() + (name.empty() ? "" : " (" + name + ")");
}

/// The links that are removed, that events lack, or that brought bad or doubtful chunks; the worst first.
Cell bad_links_cell(const Json& status) {
  constexpr std::size_t kNamed = 5;
  std::vector<std::pair<double, const Json*>> bad;
  for (const Json& rob : member(status, "robs").elements()) {
    for (const Json& link : member(rob, "links").elements()) {
      const double harm = member(link, "missing").number() + member(link, "bad").number();
      if (harm > 0 || member(link, "state").string() != "active" || doubtful(link)) bad.emplace_back(harm, &link);
    }
  }
  std::ranges::stable_sort(bad, std::greater{}, [](const auto& one) { return one.first; });
  Json value = Json::array();
  std::string text;
  for (std::size_t i = 0; i < bad.size(); ++i) {
    const Json& link = *bad[i].second;
    value.push_back(link);
    if (i >= kNamed) continue;
    text += fmt::format("{}{} missing {:.0f}, bad {:.0f}", i == 0 ? "" : "; ", named(link), member(link, "missing").number(),
                        member(link, "bad").number());
    if (const double chunks = member(link, "in_doubt").number(); chunks > 0)
      text += fmt::format(", in doubt {:.0f}", chunks);
    if (member(link, "out_of_step").boolean()) text += ", out of step";
    if (member(link, "state").string() != "active") text += ", removed";
  }
  if (bad.empty()) return {std::move(value), "none", Style::good};
  if (bad.size() > kNamed) text += fmt::format("; {} more: rodeo readout link list", bad.size() - kNamed);
  return {std::move(value), std::move(text), Style::warning};
}

/// Parts that have waited for a long time and done nothing.
Cell standing_cell(const Json& standing) {
  std::string text;
  for (const Json& part : standing.elements())
    text += fmt::format("{}{} waits for {}, {:.0f} s", text.empty() ? "" : "; ", member(part, "name").string(),
                        member(part, "waits_for").string(), member(part, "seconds").number());
  const bool none = text.empty();
  return {standing, none ? "nothing" : std::move(text), none ? Style::good : Style::bad};
}

Properties properties_of(const Json& status) {
  const auto number = [&](std::string_view group, std::string_view key) -> const Json& {
    return key.empty() ? member(status, group) : member(member(status, group), key);
  };
  const auto shown = [&](std::string_view group, std::string_view key, auto show) {
    const Json& value = number(group, key);
    return Cell(value, value.is_number() ? show(value.number()) : "");
  };
  const std::string condition = number("run", "condition").string();
  Properties properties;
  properties.add("name", "name", number("run", "name"));
  properties.add("run", "run_number", number("run", "number"));
  properties.add("phase", "phase", number("phase", ""));
  properties.add("condition", "condition", {condition, "", condition == "GOOD" ? Style::good : Style::bad});
  properties.add("seconds", "seconds", shown("run", "seconds", [](double s) { return fmt::format("{:.1f}", s); }));
  properties.add("trigger rate [Hz]", "trigger_rate_hz",
                 shown("trigger_rate_hz", "", [](double rate) { return fmt::format("{:.1f}", rate); }));
  properties.add("dead time fraction", "dead_time_fraction",
                 shown("dead_time_fraction", "", [](double part) { return fmt::format("{:.4f}", part); }));
  properties.add("fragments", "fragments", number("fragments", "built"));
  properties.add("incomplete", "incomplete", number("fragments", "incomplete"));
  properties.add("incomplete by reason", "incomplete_by_reason", counters_cell(number("fragments", "incomplete_by_reason")));
  properties.add("lacking removed links", "without_removed_links", number("fragments", "without_removed_links"));
  properties.add("chunks built", "chunks_built", number("chunks", "built"));
  properties.add("chunks lost", "chunks_lost", counters_cell(number("chunks", "lost")));
  properties.add("lost before", "input_losses", counters_cell(lost_before(number("loss", "losses"))));
  properties.add("bad links", "bad_links", bad_links_cell(status));
  properties.add("written", "bytes_written",
                 shown("bytes", "written", [](double bytes) { return base::format_quantity(bytes, "B"); }));
  properties.add("limited by", "limited_by", number("limited_by_now", ""));
  properties.add("standing", "standing", standing_cell(number("standing", "")));
  return properties;
}

Result<ExitCode> list_links(const AskOptions& options) {
  const auto status = RODEO_TRY(ask_process(process::kReadout, options.name, Json::object({{"command", "status"}})));
  Table table({{"ROB", "source_id"},
               {"link", "fid"},
               {"name", "name", true},
               {"state", "state"},
               {"by policy", "removed_by_policy", true},
               {"chunks", "chunks"},
               {"missing", "missing"},
               {"bad", "bad"},
               {"in doubt", "in_doubt", true},
               {"moved", "moved", true},
               {"out of step", "out_of_step", true},
               {"BCID offset", "bcid_offset", true}});
  for (const Json& rob : member(status, "robs").elements()) {
    for (const Json& link : member(rob, "links").elements()) {
      const bool active = member(link, "state").string() == "active";
      table.add_row(
          {member(rob, "source_id"), member(link, "fid"), member(link, "name"),
           Cell(member(link, "state"), "", active ? Style::good : Style::warning), member(link, "removed_by_policy"),
           member(link, "chunks"), member(link, "missing"), member(link, "bad"), member(link, "in_doubt"),
           member(link, "moved"),
           Cell(member(link, "out_of_step"), "", member(link, "out_of_step").boolean() ? Style::bad : Style::plain),
           Cell(member(link, "bcid_offset"), member(link, "bcid_offset").is_null() ? "-" : "")});
    }
  }
  table.print(options.format);
  return ExitCode::done;
}

Result<ExitCode> ask_for_link(const AskOptions& options, const char* command, const std::string& fid) {
  RODEO_TRY(ask_process(process::kReadout, options.name, Json::object({{"command", command}, {"fid", fid}})));
  return ExitCode::done;
}

/// Uses the hash of the configuration that the readout has loaded.
Result<ExitCode> start_run(const AskOptions& options, const StartOptions& run) {
  const auto status = RODEO_TRY(ask_process(process::kReadout, options.name, Json::object({{"command", "status"}})));
  Json request = Json::object({{"command", "start"},
                               {"run", run.number},
                               {"configuration_sha256", member(member(status, "process"), "configuration_sha256")}});
  if (!run.type.empty()) request["run_type"] = run.type;
  RODEO_TRY(ask_process(process::kReadout, options.name, request));
  return ExitCode::done;
}

}  // namespace

void add_readout(Command& root) {
  auto options = std::make_shared<ReadoutOptions>();
  Command& readout = root.verb("readout", "Runs the software ROD, or talks to a running one");
  readout.example("rodeo readout examples/demo.toml --seconds 10", "run a configuration for 10 s")
      .example("rodeo readout run.toml --set readout.input.rate=50kHz --json -", "with another rate; the report as JSON")
      .example("rodeo readout status --name demo", "the state of a running readout")
      .example("rodeo readout link remove 0x1000000000540000 --name demo", "remove a link from the build during a run");
  add_run_options(readout, process::kReadout, *options);
  readout.option("--events", options->events, "End the run after this many built fragments; some more may still follow");
  readout
      .option(
          "--fail-on-loss", options->fail_on_loss,
          "Exit status 6 if more than this fraction is lost (0.01: one in a hundred; without value: any loss); overrides "
          "readout.fail_on_loss")
      .value_name("[=FRACTION]");
  readout
      .option(
          "--database", options->database,
          "Run database (runs.db of a control room, or a new file) for the run's number and report; `rodeo runs` lists it")
      .value_name("DATABASE");
  readout.paragraph(
      "A configuration with the name of a verb below needs its directory: ./status. --set names a consumer by position or "
      "by "
      "name: readout.consumer[writer].directory=/data.");
  readout.paragraph(
      "Runs until Ctrl-C (or SIGTERM), the end of the input, or a limit. The first Ctrl-C ends the run in order: the input "
      "stops, buffers drain, files close, the report is printed. A second Ctrl-C changes nothing, a third aborts.");
  readout.paragraph(
      "Without run.number the run takes the next number without files in the directories of its file writers; with "
      "--database this number is also new in the database.");
  readout.paragraph(
      "Exit status 0: the run ended normally, and losses are within the limit of --fail-on-loss, if any; 6: more was lost; "
      "1: a part failed (disk full, ...), even if other faults exist; 7: the verifying processor found wrong bytes. The "
      "last line of the report says what was lost.");
  readout.run([options] { return run(*options); });

  auto ask = std::make_shared<AskOptions>();
  const auto with_name = [ask](Command& verb) { add_name(verb, process::kReadout, *ask); };
  add_status(
      readout, process::kReadout, ask, [] { return Json::object({{"command", "status"}}); },
      [ask](const Json& status, bool) -> Result<ExitCode> {
        properties_of(status).print(ask->format);
        return ExitCode::done;
      })
      .example("rodeo readout status --watch", "each second, until the run is over or Ctrl-C")
      .example("rodeo readout status -o json", "the whole status, for programs");

  auto run = std::make_shared<StartOptions>();
  Command& start = readout.verb("start", "Starts a run in a held readout");
  start.example("rodeo readout start --run 12 --name demo", "after rodeo readout examples/demo.toml --hold");
  start.option("--run", run->number, "Number of the run, at least 1").required().value_name("N");
  start.option("--type", run->type, "Type of the run (run.type; default: the configuration's)");
  with_name(start);
  start.run([ask, run] { return start_run(*ask, *run); });

  add_stop(readout, process::kReadout, ask);

  auto fid = std::make_shared<std::string>();
  Command& link = readout.verb("link", "Links of a running readout");
  Command& list = link.verb("list", "Lists every link with its state and counts");
  with_name(list);
  list.output(ask->format);
  list.run([ask] { return list_links(*ask); });
  Command& remove = link.verb("remove", "Removes a link from the build: events no longer wait for it");
  remove.option("FID", *fid, "FELIX identifier of the link").required();
  with_name(remove);
  remove.run([ask, fid] { return ask_for_link(*ask, "link_remove", *fid); });
  Command& restore = link.verb("restore", "Restores a removed link to the build");
  restore.option("FID", *fid, "FELIX identifier of the link").required();
  with_name(restore);
  restore.run([ask, fid] { return ask_for_link(*ask, "link_restore", *fid); });
}

}  // namespace rodeo::cli
