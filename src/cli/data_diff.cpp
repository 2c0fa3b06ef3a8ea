// `rodeo data diff`: the differences of two event files, event by event.
#include <fmt/format.h>

#include <optional>

#include "cli/data.h"
#include "cli/data_file.h"
#include "cli/data_progress.h"
#include "storage/file_diff.h"

namespace rodeo::cli {
namespace {

using namespace storage;

struct DataDiffOptions {
  std::string left;
  std::string right;
  std::uint64_t window = 1000;
  bool ignore_times = false;
  bool all = false;
  OutputFormat format = OutputFormat::table;
};

constexpr std::uint64_t kDifferencesByDefault = 20;

Cell number_or_nothing(std::optional<std::uint32_t> number) { return number ? Cell(*number) : Cell(Json(), "-"); }
Cell offset_or_nothing(const std::string& what, std::uint64_t event, std::uint64_t within) {
  return what.empty() ? Cell(Json(), "-") : Cell(event + within);
}

Table difference_table() {
  return Table({{"L1 id", "l1id"},
                {"event of A", "event_a"},
                {"of B", "event_b"},
                {"where", "where"},
                {"what", "field"},
                {"A", "a"},
                {"B", "b"},
                {"byte of A", "offset_a_bytes"},
                {"of B", "offset_b_bytes"}});
}

// A missing value is shown as "-".
Cell text_or_nothing(const std::string& text) {
  constexpr std::size_t kShown = 60;
  if (text.empty()) return {Json(), "-"};
  return {text, text.size() <= kShown ? text : text.substr(0, kShown) + "…"};
}

void add(Table& table, const FileDifference& one) {
  table.add_row({one.l1id ? Cell(one.l1id->value, fmt::format("{:#010x}", one.l1id->value)) : Cell(Json(), "-"),
                 number_or_nothing(one.left_number), number_or_nothing(one.right_number), one.what.where, one.what.field,
                 text_or_nothing(one.what.left), text_or_nothing(one.what.right),
                 offset_or_nothing(one.left_number ? one.what.left : "", one.left_offset, one.what.left_offset),
                 offset_or_nothing(one.right_number ? one.what.right : "", one.right_offset, one.what.right_offset)});
}

Result<ExitCode> diff(const DataDiffOptions& options) {
  if (options.window < 1 || options.window > 10'000'000)
    return value_error("--window must be 1 to 10 000 000 events", "the default is 1000");
  const auto a = RODEO_TRY(open_any_file(options.left));
  const auto b = RODEO_TRY(open_any_file(options.right));
  Table table = difference_table();
  std::optional<ProgressLine> line(std::in_place, "comparing", a.bytes().size() + b.bytes().size());
  const auto report =
      diff_files(options.left, options.right, {.window = options.window, .events = {.times = !options.ignore_times}},
                 line->told(), [&](const FileDifference& one) {
                   if (options.all || table.rows() < kDifferencesByDefault) add(table, one);
                 });
  line.reset();
  if (!report) return std::unexpected(report.error());
  const DiffReport& found = *report;
  if (options.format == OutputFormat::json) {
    Json json = Json::object({{"a", options.left},
                              {"b", options.right},
                              {"same", found.same()},
                              {"events_a", found.left_events},
                              {"events_b", found.right_events},
                              {"same_events", found.same_events},
                              {"different_events", found.different_events},
                              {"only_in_a", found.only_left},
                              {"only_in_b", found.only_right},
                              {"differences_total", found.differences}});
    json["differences"] = table.json();
    print(json.dump() + "\n");
  } else {
    if (options.format == OutputFormat::csv || table.rows() > 0) table.print(options.format);
    if (options.format == OutputFormat::table) {
      if (found.differences > table.rows())
        print_folded(fmt::format("… and {} more: --all lists all\n", grouped(found.differences - table.rows())));
      print_folded(fmt::format("{} the same, {} different, {} only in A, {} only in B\n",
                               counted(found.same_events, "event"), grouped(found.different_events),
                               grouped(found.only_left), grouped(found.only_right)));
    }
  }
  return found.same() ? ExitCode::done : ExitCode::not_verified;
}

}  // namespace

void add_data_diff(Command& data) {
  auto options = std::make_shared<DataDiffOptions>();
  Command& verb = data.verb("diff", "Compares two event files: which events differ, and where; exit status 7 if any differ");
  verb.example("rodeo data diff A.data B.data", "records, headers, ROBs, and chunks down to the first byte");
  verb.example("rodeo data diff A.data B.data --ignore-times -o json", "two runs of the same triggers, for programs");
  verb.option("A", options->left, "An event file").required();
  verb.option("B", options->right, "Another").required();
  verb.flag("--ignore-times", options->ignore_times, "Bunch-crossing times of events may differ");
  verb.option("--window", options->window, "Events that may be out of order").value_name("N");
  verb.flag("--all", options->all, fmt::format("Every difference, not only the first {}", kDifferencesByDefault));
  verb.output(options->format);
  verb.paragraph(
      "Events are paired by L1 id, ROBs by source id, chunks by link id. Name, GUID, dates, checksum and numbers of data "
      "blocks may differ between files, as may the compression of the payload. Damaged files are compared as far as they "
      "can be read.");
  verb.run([options] { return diff(*options); });
}

}  // namespace rodeo::cli
