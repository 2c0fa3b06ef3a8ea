// `rodeo data merge`: combines the files of several readouts of one run; each event is written once and whole.
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "cli/data.h"
#include "cli/data_file.h"
#include "cli/data_progress.h"
#include "process/stop_signals.h"
#include "storage/file_merge.h"

namespace rodeo::cli {
namespace {

using namespace storage;

struct DataMergeOptions {
  std::vector<std::string> files;
  std::string output;
  std::uint64_t window = 1000;
  std::optional<std::uint64_t> max_size;
  std::optional<std::uint64_t> max_events;
  OutputFormat format = OutputFormat::table;
};

// "events_in 600 = merged_in 598 + duplicate_events 1 + contradicting_events 0 + damaged_events 1"
std::string sum_text(const MergeReport& report) {
  const auto text = [&](MergeCounter counter) {
    return fmt::format("{} {}", kMergeCounters[static_cast<std::size_t>(counter)].name, grouped(report.count(counter)));
  };
  return fmt::format("{} = {} + {} + {} + {}{}", text(MergeCounter::events_in), text(MergeCounter::merged_in),
                     text(MergeCounter::duplicate_events), text(MergeCounter::contradicting_events),
                     text(MergeCounter::damaged_events), report.adds_up() ? "" : ": this does NOT add up");
}

Json json_of(const MergeReport& report) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kMergeCounters.size(); ++i) json[kMergeCounters[i].name] = report.counts[i];
  json["adds_up"] = report.adds_up();
  json["by"] = report.by_global_id ? "global_id" : "l1_id";
  json["most_held_events"] = report.most_held;
  Json writers = Json::array();
  for (const WriterFiles& writer : report.writers) {
    writers.push_back(Json::object({{"name", writer.name},
                                    {"files", writer.files.size()},
                                    {"absent_files", writer.absent.size()},
                                    {"size_bytes", writer.bytes}}));
  }
  json["writers"] = std::move(writers);
  json["files"] = files_json(report.files);
  json["named"] = Json::array_of(report.named);
  return json;
}

void print_for_people(const MergeReport& report) {
  for (const WriterFiles& writer : report.writers) {
    print_folded(fmt::format("{}: {}, {}\n", writer.name, counted(writer.files.size(), "file"), size_text(writer.bytes)));
  }
  print_folded(sum_text(report) + "\n");
  print_folded(fmt::format(
      "events_out {}: {} complete, {} incomplete ({} missing)\n", grouped(report.count(MergeCounter::events_out)),
      grouped(report.count(MergeCounter::complete_events)), grouped(report.count(MergeCounter::incomplete_events)),
      counted(report.count(MergeCounter::missing_robs), "ROB")));
  for (const MergeCounter counter : {MergeCounter::duplicate_robs, MergeCounter::contradicting_robs,
                                     MergeCounter::bcid_differs, MergeCounter::trigger_type_differs}) {
    const base::CounterInfo& info = kMergeCounters[static_cast<std::size_t>(counter)];
    if (report.count(counter) > 0)
      print_folded(fmt::format("{} {}: {}\n", info.name, grouped(report.count(counter)), info.help));
  }
  print_files(report.files);
}

Result<ExitCode> merge(const DataMergeOptions& options) {
  if (options.window < 1 || options.window > 10'000'000)
    return value_error("--window must be 1 to 10 000 000 events", "the default is 1000");
  if (options.max_events.value_or(1) < 1 || options.max_events.value_or(1) > 0xffffffffU)
    return value_error("--max-events must be at least 1", "leave it out for no limit");
  const std::vector<std::string> files = RODEO_TRY(expanded(options.files));
  MergeSettings settings{.files = files,
                         .output = DerivedTarget::of(options.output),
                         .window = options.window,
                         .max_bytes = options.max_size.value_or(0),
                         .max_events = static_cast<std::uint32_t>(options.max_events.value_or(0))};
  const process::StopSignals signals;
  std::optional<ProgressLine> line;
  const auto report = merge_files(
      settings, [&](std::uint64_t bytes) { line.emplace("merging", bytes); },
      [&](std::uint64_t bytes) { line->advance(bytes); }, [&] { return signals.stop_requested(); });
  line.reset();
  if (!report) return std::unexpected(report.error());
  for (const WriterFiles& writer : report->writers) {
    for (const std::uint32_t number : writer.absent)
      print_note(fmt::format("{}: file {} of its sequence was not named", writer.name, number));
  }
  if (!report->by_global_id)
    print_note(
        "some of these files are older than Rodeo's rule that global ids never repeat: events were merged by run, "
        "L1 id and order, which fails if L1 ids repeat within the window");
  for (const std::string& text : report->named) print_note(text);
  if (report->named_total > report->named.size())
    print_note(fmt::format("… and {} more", grouped(report->named_total - report->named.size())));
  if (options.format == OutputFormat::table) print_for_people(*report);
  if (options.format == OutputFormat::json) print(json_of(*report).dump() + "\n");
  if (options.format == OutputFormat::csv) print_csv({json_of(*report)});
  const bool wrong = report->count(MergeCounter::damaged_events) > 0 || report->count(MergeCounter::contradicting_robs) > 0;
  return wrong ? ExitCode::not_verified : ExitCode::done;
}

}  // namespace

Json files_json(const std::vector<FragmentConsumer::File>& files) {
  Json json = Json::array();
  for (const FragmentConsumer::File& file : files) {
    json.push_back(Json::object({{"file", std::filesystem::path(file.path).lexically_normal().string()},
                                 {"size_bytes", file.bytes},
                                 {"events", file.events},
                                 {"adler32", fmt::format("{:08x}", file.adler32)}}));
  }
  return json;
}

void print_files(const std::vector<FragmentConsumer::File>& files) {
  for (const FragmentConsumer::File& file : files) {
    print_folded(fmt::format("{}: {}, {}, Adler-32 {:08x}\n", std::filesystem::path(file.path).lexically_normal().string(),
                             counted(file.events, "event"), size_text(file.bytes), file.adler32));
  }
}

void add_data_merge(Command& data) {
  auto options = std::make_shared<DataMergeOptions>();
  Command& verb = data.verb("merge", "Merges the events of one run from the files of several readouts, by global id");
  verb.example("rodeo data merge readout1/*.data readout2/*.data --output merged",
               "makes merged._0001.data, with all fragments of an event in one event");
  verb.example("rodeo data merge *.data --output merged --max-size 2GB -o json",
               "in files of at most 2 GB, with every count");
  verb.option("FILE", options->files, "Closed event files of one run, in any order; or patterns in quotation marks")
      .required();
  verb.option("--output", options->output, "The new files: NAME._0001.data and so on; must not exist")
      .value_name("NAME")
      .required();
  verb.option("--window", options->window, "Events of one readout that may be out of order").value_name("N");
  verb.size("--max-size", options->max_size, "Largest size of a new file (default: no limit)").value_name("SIZE");
  verb.option("--max-events", options->max_events, "Most events in a new file (default: no limit)").value_name("N");
  verb.output(options->format, "-o,--format");
  verb.paragraph(
      "Memory does not grow with the files. The status of an event flags missing ROBs, and its status words list them. A "
      "ROB that occurs twice is written once, and counted. Every event that is read is in a written event or in a counter, "
      "and the sum is printed.");
  verb.paragraph(
      "Incomplete files are refused by name: run `rodeo data recover` first. After any error the new files are removed. "
      "Exit status 7: events were damaged, or fragments contradicted each other.");
  verb.run([options] { return merge(*options); });
}

}  // namespace rodeo::cli
