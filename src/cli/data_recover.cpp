// `rodeo data recover`: saves every whole event of damaged event files to new files.
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "base/parallel.h"
#include "cli/data.h"
#include "cli/data_file.h"
#include "cli/data_progress.h"
#include "process/stop_signals.h"
#include "storage/file_recover.h"

namespace rodeo::cli {
namespace {

using namespace formats;
using namespace storage;

struct DataRecoverOptions {
  std::vector<std::string> files;
  std::string directory;
  OutputFormat format = OutputFormat::table;
};

Result<ExitCode> recover_one(const std::string& path, const DataRecoverOptions& options, Table& table, bool& stopped) {
  if (stopped)
    return std::unexpected(Error{"data.interrupted", "was not read: interrupted", path, "run the command again for it"});
  const auto file = RODEO_TRY(open_any_file(path));
  if (!is_ours(file.kind) && file.kind != FileKind::zeros) return std::unexpected(no_data_error(file));
  if (file.kind == FileKind::block_recording || file.kind == FileKind::superpage_dump) {
    return std::unexpected(Error{"data.recording", "was written by a card and is not an event file: it needs no recovery",
                                 path, "readers skip and count damaged parts; `rodeo data verify` lists them"});
  }
  std::optional<ProgressLine> line(std::in_place, "verifying " + path, file.bytes().size(), 2);
  if (file.kind == FileKind::event_file &&
      verify_event_file(file.bytes(), {.threads = base::usable_cores(), .progress = line->told()}).sound()) {
    line.reset();
    print_note(path + " is whole: nothing to recover; no file was written");
    table.add_row({path, Json(), 0, 0, 0, 0, 0, Json(), Json()});
    return ExitCode::done;
  }
  const std::filesystem::path name(path);
  std::string directory = options.directory.empty() ? name.parent_path().string() : options.directory;
  if (directory.empty()) directory = ".";
  line.emplace("recovering " + path, file.bytes().size(), 2);
  // Until here no file was written, so a signal simply ends the command.
  const process::StopSignals signals;
  auto result = recover_events(file.bytes(), directory, name.stem().string(), line->told(),
                               [&] { return stopped = stopped || signals.stop_requested(); });
  line.reset();
  RODEO_TRY(file.mapped.check());
  if (!result) {
    Error error = result.error();
    if (error.where.empty()) error.where = path;
    return std::unexpected(std::move(error));
  }
  const ScanTotals& scan = result->scan;
  if (!result->written) {
    const auto marker = find_event_marker(file.bytes());
    return std::unexpected(
        Error{"data.no_event", "there is no whole event in the file", path,
              marker ? fmt::format("an event seems to begin at byte {}; `rodeo data verify` says what is wrong with it",
                                   grouped(*marker))
                     : "it contains no event marker: look for the other, numbered files of the run"});
  }
  for (const Finding& finding : scan.findings.listed())
    print_note(fmt::format("{}: byte {}: {}", path, finding.offset, finding.what));
  if (const std::uint64_t more = scan.findings.total() - scan.findings.listed().size(); more > 0)
    print_note(fmt::format("{}: … and {} more", path, grouped(more)));
  if (result->marked > 0) {
    print_note(fmt::format("{}: {} marked in the new file (status bit 30: header not proven)", path,
                           counted(result->marked, "event")));
  } else if (!result->headers_proven) {
    print_note(path + ": no checksum proves the headers of the saved events, but no data contradict them");
  }
  table.add_row({path, scan.events, Cell(scan.missing_events, {}, scan.missing_events > 0 ? Style::warning : Style::plain),
                 Cell(result->marked, {}, result->marked > 0 ? Style::warning : Style::plain),
                 Cell(result->repeated, {}, result->repeated > 0 ? Style::warning : Style::plain), scan.damaged_places,
                 scan.skipped_bytes, std::filesystem::path(result->written->path).lexically_normal().string(),
                 fmt::format("{:08x}", result->written->adler32)});
  return ExitCode::done;
}

Result<ExitCode> recover(const DataRecoverOptions& options) {
  Table table({{"file", "file"},
               {"events saved", "events_saved"},
               {"events missing", "events_missing"},
               {"events marked", "events_marked"},
               {"events repeated", "events_repeated"},
               {"damaged places", "damaged_places"},
               {"bytes left out", "bytes_left_out"},
               {"saved to", "saved_to"},
               {"Adler-32", "adler32"}});
  bool stopped = false;
  const std::vector<std::string> files = RODEO_TRY(expanded(options.files));
  auto outcome = for_each_file(files, [&](const std::string& path) { return recover_one(path, options, table, stopped); });
  if (table.rows() > 0 || options.format != OutputFormat::table) table.print(options.format);
  return outcome;
}

}  // namespace

void add_data_recover(Command& data) {
  auto options = std::make_shared<DataRecoverOptions>();
  Command& verb = data.verb("recover", "Saves every whole event of a file that was cut, not closed or damaged");
  verb.example("rodeo data recover run._0001.writing",
               "after a writer was killed: makes run._0001.recovered._0001.data beside it");
  verb.option("FILE", options->files, "Damaged event files; they are not changed").required();
  verb.option("--directory", options->directory, "Directory of the new files (default: beside the damaged ones)")
      .value_name("DIR");
  verb.output(options->format);
  verb.paragraph(
      "An event is whole if it decodes and its checksums hold. After damage the search continues at the next whole event.");
  verb.paragraph(
      "The records of the file have a check for each header. An event whose header does not fit its check is marked in the "
      "new file (status: header not proven). Older files have no header checks. Of their events, those are marked whose "
      "header contradicts its data or its neighbours. All are marked if the CRC-32 of the whole file shows damage and its "
      "place is unknown.");
  verb.run([options] { return recover(*options); });
}

}  // namespace rodeo::cli
