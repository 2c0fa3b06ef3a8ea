// `rodeo data filter`: writes selected events to new event files, and splits files by stream, number or size.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "cli/data.h"
#include "cli/data_file.h"
#include "cli/data_progress.h"
#include "cli/python_judge.h"
#include "process/stop_signals.h"
#include "storage/file_filter.h"

namespace rodeo::cli {
namespace {

using namespace formats;
using namespace storage;

struct DataFilterOptions {
  std::vector<std::string> files;
  std::string output;
  std::vector<std::string> status;
  std::vector<std::string> streams;
  std::vector<std::string> trigger_types;
  std::optional<std::string> l1id;
  std::optional<std::string> python;
  std::chrono::nanoseconds hang = std::chrono::seconds(10);
  std::string split = "none";
  std::optional<std::uint64_t> max_size;
  std::optional<std::uint64_t> max_events;
  OutputFormat format = OutputFormat::table;
};

// Decimal, or hex with 0x.
std::optional<std::uint32_t> read_number(std::string_view text) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (hex) text.remove_prefix(2);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

Result<std::pair<L1Id, L1Id>> read_range(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto first = read_number(text.substr(0, colon));
  const auto last = colon == std::string::npos ? first : read_number(text.substr(colon + 1));
  if (first && last) return std::pair(L1Id{*first}, L1Id{*last});
  return value_error("--l1id needs FIRST:LAST or one id, not " + text,
                     "extended L1 ids, both included: 0x01000000:0x01ffffff is all of ECR 1");
}

Result<EventFilter> filter_of(const DataFilterOptions& options) {
  EventFilter filter;
  for (const std::string& status : options.status) {
    if (status == "good" || status == "flagged") {
      const auto wanted = status == "good" ? EventFilter::Status::good : EventFilter::Status::flagged;
      if (filter.status != EventFilter::Status::any && filter.status != wanted)
        return value_error("--status good and --status flagged leave no event", "choose one of them");
      filter.status = wanted;
    } else if (const auto bits = read_number(status); bits && *bits != 0) {
      filter.status_bits |= *bits;
    } else {
      return value_error("--status needs good, flagged or bits, not " + status,
                         "0x4 is a time-out; `rodeo data list` shows the names of the bits");
    }
  }
  filter.streams.insert(options.streams.begin(), options.streams.end());
  for (const std::string& text : options.trigger_types) {
    const auto type = read_number(text);
    if (!type) return value_error("--trigger-type needs a number, not " + text, "decimal, or hex: 0x80");
    filter.trigger_types.insert(*type);
  }
  if (options.l1id) filter.l1ids = RODEO_TRY(read_range(*options.l1id));
  return filter;
}

std::string words_of(const DataFilterOptions& options) {
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " ", name, value);
  };
  for (const auto& one : options.status) add("--status", one);
  for (const auto& one : options.streams) add("--stream", one);
  for (const auto& one : options.trigger_types) add("--trigger-type", one);
  if (options.l1id) add("--l1id", *options.l1id);
  if (options.python) add("--python", *options.python);
  return text.empty() ? "every event" : text;
}

Json json_of(const FilterReport& report) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kFilterCounters.size(); ++i) json[kFilterCounters[i].name] = report.counts[i];
  json["files"] = files_json(report.files);
  json["named"] = Json::array_of(report.named);
  return json;
}

void print_for_people(const FilterReport& report) {
  std::string sum = fmt::format("events_in {} = kept {}", grouped(report.count(FilterCounter::events_in)),
                                grouped(report.count(FilterCounter::kept)));
  for (std::size_t i = static_cast<std::size_t>(FilterCounter::other_status);
       i <= static_cast<std::size_t>(FilterCounter::damaged_events); ++i) {
    if (report.counts[i] > 0) sum += fmt::format(" + {} {}", kFilterCounters[i].name, grouped(report.counts[i]));
  }
  print_folded(sum + "\n");
  if (report.count(FilterCounter::events_out) != report.count(FilterCounter::kept)) {
    print_folded(fmt::format("events_out {}: events of several streams are in the files of each\n",
                             grouped(report.count(FilterCounter::events_out))));
  }
  print_files(report.files);
}

Result<ExitCode> filter(const DataFilterOptions& options) {
  if (options.hang < std::chrono::milliseconds(1) || options.hang > std::chrono::hours(24))
    return value_error("--hang must be 1ms to 24h", "it is the time for one event, for example 10s");
  if (options.max_events.value_or(1) < 1 || options.max_events.value_or(1) > 0xffffffffU)
    return value_error("--max-events must be at least 1", "leave it out for no limit");
  const std::vector<std::string> files = RODEO_TRY(expanded(options.files));
  const EventFilter conditions = RODEO_TRY(filter_of(options));
  FilterSettings settings{.files = files,
                          .filter = conditions,
                          .output = DerivedTarget::of(options.output),
                          .by_stream = options.split == "stream",
                          .max_bytes = options.max_size.value_or(0),
                          .max_events = static_cast<std::uint32_t>(options.max_events.value_or(0)),
                          .says = words_of(options)};
  std::uint64_t bytes = 0;
  for (const std::string& path : files) bytes += RODEO_TRY(EventFileWalk::open(path)).bytes();
  const process::StopSignals signals;
  std::optional<PythonJudge> judge;
  if (options.python) {
    judge = RODEO_TRY(PythonJudge::start(*options.python, files, options.hang));
    settings.wants = [&](const WalkedEvent&) { return judge->next(); };
  }
  std::optional<ProgressLine> line(std::in_place, "filtering", bytes);
  const auto report = filter_files(settings, line->told(), [&] { return signals.stop_requested(); });
  line.reset();
  if (!report) return std::unexpected(report.error());
  for (const std::string& text : report->named) print_note(text);
  if (report->count(FilterCounter::kept) == 0) print_note("no event meets the conditions");
  if (options.format == OutputFormat::table) print_for_people(*report);
  if (options.format == OutputFormat::json) print(json_of(*report).dump() + "\n");
  if (options.format == OutputFormat::csv) print_csv({json_of(*report)});
  if (report->count(FilterCounter::damaged_events) > 0) return ExitCode::not_verified;
  return report->count(FilterCounter::timed_out) > 0 ? ExitCode::partial : ExitCode::done;
}

}  // namespace

void add_data_filter(Command& data) {
  auto options = std::make_shared<DataFilterOptions>();
  Command& verb = data.verb("filter", "Writes the events that meet conditions to new files, or splits files");
  verb.example("rodeo data filter run*.data --status flagged --output flagged",
               "events in which something is missing or wrong");
  verb.example("rodeo data filter run*.data --l1id 0x01000000:0x01ffffff --output ecr1", "a range of extended L1 ids");
  verb.example("rodeo data filter run*.data --python mine.py:interesting --output mine",
               "events for which your function returns True");
  verb.example("rodeo data filter big.data --split stream --max-size 2GB --output part",
               "part.physics_Main._0001.data and so on");
  verb.option("FILE", options->files, "Closed event files of one run, read in this order").required();
  verb.option("--output", options->output, "The new files: NAME._0001.data and so on; must not exist")
      .value_name("NAME")
      .required();
  verb.option("--status", options->status, "good: without flags; flagged: with a flag; or bits, one of which must be set")
      .value_name("STATUS");
  verb.option("--stream", options->streams, "TYPE_NAME, as physics_Main; if repeated: any of them").value_name("STREAM");
  verb.option("--trigger-type", options->trigger_types, "L1 trigger type; if repeated: any of them").value_name("TYPE");
  verb.option("--l1id", options->l1id, "Extended L1 ids from FIRST to LAST, both included").value_name("FIRST:LAST");
  verb.option("--python", options->python, "Your function: it gets an event of rodeo.data and returns True to keep it")
      .value_name("FILE.py[:FUNCTION]");
  verb.duration("--hang", options->hang, "Time limit of the function for one event; an event beyond it is left out");
  verb.choice("--split", options->split, {"none", "stream"}, "Separate files for each stream");
  verb.size("--max-size", options->max_size, "Largest size of a new file (default: no limit)").value_name("SIZE");
  verb.option("--max-events", options->max_events, "Most events in a new file (default: no limit)").value_name("N");
  verb.output(options->format, "-o,--format");
  verb.paragraph(
      "All conditions must hold; an event that is not kept counts under its first condition that fails. Events are copied "
      "byte for byte. Incomplete files are refused by name: run `rodeo data recover` first. After any error the new files "
      "are removed. Exit status 7: damaged events were left out; 6: the function timed out at some events.");
  verb.run([options] { return filter(*options); });
}

}  // namespace rodeo::cli
