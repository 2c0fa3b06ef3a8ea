// `rodeo data convert` and `plot`: event files to HDF5 or ROOT, HDF5 back to event files, and figures. Python reads HDF5 and
// ROOT.
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "cli/data.h"
#include "cli/data_file.h"
#include "cli/python.h"
#include "formats/event_check.h"
#include "formats/event_file_records.h"
#include "formats/words.h"
#include "process/stop_signals.h"
#include "storage/derived_files.h"
#include "storage/event_file_walk.h"
#include "storage/joined_records.h"

namespace rodeo::cli {
namespace {

using namespace storage;

struct DataConvertOptions {
  std::vector<std::string> files;
  std::string output;
  std::string to = "auto";
  unsigned compression = 4;
  OutputFormat format = OutputFormat::table;
};

bool ends_with_one(const std::string& name, std::initializer_list<std::string_view> endings) {
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::any_of(endings, [&](std::string_view ending) { return lower.ends_with(ending); });
}

bool is_hdf5(const std::string& name) { return ends_with_one(name, {".h5", ".hdf5"}); }

// The kinds of the files are checked before Python starts.
Result<void> refuse_other_files(const std::vector<std::string>& files) {
  for (const std::string& path : files) {
    const auto file = RODEO_TRY(open_any_file(path));
    if (file.kind != FileKind::event_file) return std::unexpected(no_event_file(file.kind, file.bytes(), path));
  }
  return {};
}

// Blocks of bytes from a Python process: each block follows its size.
class Blocks {
 public:
  explicit Blocks(int descriptor) : descriptor_(descriptor) {}

  static constexpr std::uint32_t kEnd = 0xffffffff;

  /// nullopt: the process ended too early, or sent impossible data.
  std::optional<std::uint32_t> size() {
    std::array<std::byte, 4> word;
    if (!fill(word)) return std::nullopt;
    return formats::load_word(word.data());
  }
  bool fill(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::read(descriptor_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return true;
  }

 private:
  int descriptor_;
};

std::unexpected<Error> ended_early(const std::string& file) {
  return std::unexpected(
      Error{"data.damaged", "not all events could be read; the new files were removed", file, "see Python's message above"});
}

// The run settings of the new file: those in the records of all files from which the HDF5 file was made.
Result<EventFileSettings> settings_of_records(const std::string& file, Blocks& blocks) {
  const auto count = blocks.size();
  if (!count || *count == 0) return ended_early(file);
  JoinedRecords records;
  for (std::uint32_t i = 0; i < *count; ++i) {
    const auto size = blocks.size();
    if (!size || *size > (64U << 20)) return ended_early(file);
    std::vector<std::byte> bytes(*size);
    if (!blocks.fill(bytes)) return ended_early(file);
    const auto header = formats::decode_file_header(bytes);
    if (!header) {
      return std::unexpected(Error{
          "data.header", fmt::format("/file/{}: the records cannot be read: {}", i, header.error().message()), file, ""});
    }
    if (i > 0 && header->run.run_number != records.settings().run.run_number) {
      return std::unexpected(Error{"data.other_run",
                                   fmt::format("/file/{} is of run {}, /file/0 of run {}", i, header->run.run_number,
                                               records.settings().run.run_number),
                                   file, "an event file has one run: convert the files of one run at a time"});
    }
    records.add(*header);
  }
  return records.settings();
}

// Writes the events of an HDF5 file unchanged. The new file's checksums cannot show earlier damage, so each event is
// checked.
Result<std::vector<FragmentConsumer::File>> write_events(const std::string& file, const std::string& output,
                                                         int descriptor) {
  Blocks blocks(descriptor);
  const EventFileSettings settings = RODEO_TRY(settings_of_records(file, blocks));
  formats::EventChecker checker({.ours = !settings.foreign_events, .run_number = settings.run.run_number, .provable = {}});
  auto files = RODEO_TRY(DerivedFiles::create(DerivedTarget::of(output), settings));
  const process::StopSignals signals;
  std::vector<std::byte> bytes;
  for (std::uint64_t at = 0, number = 0;; at += bytes.size(), ++number) {
    const auto size = blocks.size();
    if (signals.stop_requested()) {
      return std::unexpected(Error{"data.interrupted", "interrupted: the new files were removed", output,
                                   "the file that was read is unchanged"});
    }
    if (!size) return ended_early(file);
    if (*size == Blocks::kEnd) return files.keep();
    if (*size > kLargestEventBytes) return ended_early(file);
    bytes.resize(*size);
    if (!blocks.fill(bytes)) return ended_early(file);
    formats::Findings findings;
    if (!checker.check(bytes, at, fmt::format("event {}", number), findings)) {
      return std::unexpected(
          Error{"data.damaged",
                fmt::format("byte {} of /bytes: {}", findings.listed().front().offset, findings.listed().front().what), file,
                "the new files were removed; convert the event files again"});
    }
    RODEO_TRY(files.append(bytes));
  }
}

Result<ExitCode> back(const DataConvertOptions& options) {
  const std::vector<std::string> names = RODEO_TRY(expanded(options.files));
  if (names.size() != 1) return value_error("only one HDF5 file can be converted at a time", "name one");
  const std::string& name = names.front();
  RODEO_TRY(open_any_file(name));
  auto [from, to] = RODEO_TRY(base::make_pipe());
  auto python = RODEO_TRY(start_python("rodeo.data_tools.hdf5", {"--back", name}, -1, to.get()));
  to = base::UniqueFd();
  const auto files = write_events(name, options.output, from.get());
  from = base::UniqueFd();
  const int status = python.wait();
  if (!files) return std::unexpected(files.error());
  if (status != 0) return ended_early(name);
  if (options.format == OutputFormat::table) print_files(*files);
  if (options.format == OutputFormat::json) print(files_json(*files).dump() + "\n");
  if (options.format == OutputFormat::csv) {
    Table table({{"file", "file"}, {"size [B]", "size_bytes"}, {"events", "events"}, {"Adler-32", "adler32"}});
    const Json written = files_json(*files);
    for (const Json& one : written.elements())
      table.add_row({member(one, "file"), member(one, "size_bytes"), member(one, "events"), member(one, "adler32")});
    table.print(options.format);
  }
  return ExitCode::done;
}

Result<ExitCode> convert(const DataConvertOptions& options) {
  const bool from_hdf5 = std::ranges::any_of(options.files, is_hdf5);
  const std::string to = options.to != "auto"                       ? options.to
                         : from_hdf5                                ? "data"
                         : is_hdf5(options.output)                  ? "hdf5"
                         : ends_with_one(options.output, {".root"}) ? "root"
                                                                    : "";
  if (to.empty())
    return value_error("the ending of --output gives no format: " + options.output,
                       "end it with .h5 or .root, or give --to hdf5|root");
  if (to == "data") return back(options);
  if (options.compression > 9) return value_error("--compression must be 0 to 9", "the default is 4");
  const std::vector<std::string> files = RODEO_TRY(expanded(options.files));
  RODEO_TRY(refuse_other_files(files));
  std::vector<std::string> arguments{options.output};
  if (to == "hdf5") arguments.push_back(std::to_string(options.compression));
  arguments.emplace_back(options.format == OutputFormat::json  ? "json"
                         : options.format == OutputFormat::csv ? "csv"
                                                               : "table");
  return run_python_on(files, to == "hdf5" ? "rodeo.data_tools.hdf5" : "rodeo.data_tools.root", arguments);
}

Result<ExitCode> plot(const DataConvertOptions& options) {
  const std::vector<std::string> files = RODEO_TRY(expanded(options.files));
  RODEO_TRY(refuse_other_files(files));
  return run_python_on(files, "rodeo.data_tools.plot", {options.output});
}

}  // namespace

void add_data_convert(Command& data) {
  auto options = std::make_shared<DataConvertOptions>();
  Command& verb = data.verb("convert", "Converts event files to HDF5 or ROOT, and HDF5 back to an event file");
  verb.example("rodeo data convert run*.data --output run.h5", "columns and bytes, for any HDF5 viewer");
  verb.example("rodeo data convert run*.data --output run.root", "a tree with an entry for each event");
  verb.example("rodeo data convert run.h5 --output again", "makes again._0001.data with the same events");
  verb.option("FILE", options->files, "Event files, or one HDF5 file made by this verb").required();
  verb.option("--output", options->output, "The new file, ending in .h5, .hdf5 or .root; must not exist")
      .value_name("FILE")
      .required();
  verb.choice("--to", options->to, {"auto", "hdf5", "root", "data"}, "The format; auto: from the ending");
  verb.option("--compression", options->compression, "HDF5: gzip level, 0 for none").value_name("LEVEL");
  verb.output(options->format, "-o,--format");
  verb.paragraph(
      "Memory does not grow with the files. HDF5 keeps every byte of every event, so it converts back to the same events; "
      "compressed payload comes back uncompressed. ROOT has only the columns. HDF5 needs the Python package h5py; ROOT "
      "needs uproot and awkward. Exit status 7: damaged events were left out.");
  verb.run([options] { return convert(*options); });

  auto plot_options = std::make_shared<DataConvertOptions>();
  Command& picture = data.verb("plot", "Plots event files: sizes, rate over time, missing links, bunch crossings");
  picture.example("rodeo data plot run*.data --output run.png", "or .svg, .pdf");
  picture.option("FILE", plot_options->files, "Event files").required();
  picture.option("--output", plot_options->output, "The figure, ending in .png, .svg or .pdf; must not exist")
      .value_name("FILE")
      .required();
  picture.paragraph("It needs the Python package matplotlib. Exit status 7: damaged events were left out.");
  picture.run([plot_options] { return plot(*plot_options); });
}

}  // namespace rodeo::cli
