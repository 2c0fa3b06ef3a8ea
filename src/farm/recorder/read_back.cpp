#include "farm/recorder/read_back.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/mapped_file.h"
#include "base/sentence.h"
#include "formats/full_event.h"
#include "formats/stream_tags.h"
#include "storage/event_file_encoder.h"
#include "storage/event_file_reader.h"
#include "storage/file_recover.h"
#include "storage/file_seal.h"

namespace rodeo::farm {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRecovered = ".recovered._";
constexpr std::uint64_t kIdsMark = 0x0001'5344'4945'4452;  // First word of a file of ids: "RDEIDS", version 1.

// Names: "data26.00431493.physics_Main.daq.RAW._lb0525._recorder._0001.data"; recovered ones have ".recovered._0001" inside.
bool is_of_run(const RunFiles& run, const std::string& name) {
  return storage::run_number_in(name, run.project) == run.run_number &&
         name.find(fmt::format("._{}._", run.recorder)) != std::string::npos;
}

[[noreturn]] void refuse_file(const Error& error, const fs::path& file, const std::string& what) {
  throw SetupError(
      Error{error.code, fmt::format("{}: {}", what, error.what), file.string(),
            error.next.empty()
                ? "check it with `rodeo data verify`; if you move it away, events that no other file has may be recorded "
                  "a second time"
                : error.next});
}

/// Adds ids with the stream in their file's name: <project>.<run>.<type>_<stream>.daq... The first underscore ends the type.
void add_copies(RecordedEvents& ids, const std::vector<RecordedCopy>& more, const RunFiles& run, std::string_view file) {
  file.remove_prefix(std::min(run.project.size() + 1, file.size()));
  file.remove_prefix(std::min(file.find('.') + 1, file.size()));
  const std::string_view stream = file.substr(0, file.find('.'));
  const std::size_t parts = std::min(stream.find('_'), stream.size());
  const std::string_view name = stream.substr(std::min(parts + 1, stream.size()));
  const bool named = formats::good_stream_text(stream.substr(0, parts), formats::kMostStreamType) &&
                     formats::good_stream_text(name, formats::kMostStreamName);
  const auto number = named ? ids.stream_number(stream.substr(0, parts), name) : ids.stream_number("physics", "unknown");
  for (const RecordedCopy& one : more) ids.add_copy(one.id, number, one.copies);
}

// Recovers a file that a killed recorder left open. An earlier recovery may have finished before the kill; its file counts.
void recover(const RunFiles& run, const fs::path& file, const std::function<void(std::string)>& say) {
  const std::string name = file.filename().string();
  const fs::path recovered = run.directory / (file.stem().string() + std::string(kRecovered) + "0001.data");
  std::uint64_t events = 0;
  if (!fs::exists(recovered)) {
    auto mapped = base::MappedFile::open(file.string());
    if (!mapped) refuse_file(mapped.error(), file, "cannot be recovered");
    const auto result = storage::recover_events(mapped->bytes(), run.directory.string(), file.stem().string());
    if (!result) refuse_file(result.error(), file, "cannot be recovered");
    if (const auto whole = mapped->check(); !whole) refuse_file(whole.error(), file, "cannot be recovered");
    events = result->scan.events;
    if (!result->written) {
      say(fmt::format("{} was left open and has no event: removed", name));
    } else {
      say(fmt::format("{} was left open: its {} are in {}", name, base::counted(events, "event"),
                      recovered.filename().string()));
    }
  }
  if (const auto flushed = storage::flush_directory_of(file.string()); !flushed)
    refuse_file(flushed.error(), file, "cannot be recovered");
  fs::remove(file);
}

Result<std::vector<RecordedCopy>> read_remembered(const fs::path& path) {
  const auto mapped = RODEO_TRY(base::MappedFile::open(path.string()));
  const auto bytes = mapped.bytes();
  std::vector<RecordedCopy> copies;
  std::vector<std::uint64_t> words(bytes.size() / sizeof(std::uint64_t));
  if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint64_t));
  RODEO_TRY(mapped.check());
  const std::size_t listed = words.size() < 2 ? 0 : words.size() - 2;
  if (bytes.size() % sizeof(std::uint64_t) != 0 || words.size() < 2 || words[0] != kIdsMark || words[1] > listed ||
      (listed - words[1]) % 2 != 0)
    return std::unexpected(Error{"farm.bad_ids", "not a list of ids", path.string()});
  const std::size_t pairs = 2 + static_cast<std::size_t>(words[1]);
  for (std::size_t i = 2; i < pairs; ++i) copies.push_back({words[i], 1});
  for (std::size_t i = pairs; i < words.size(); i += 2) copies.push_back({words[i], words[i + 1]});
  return copies;
}

}  // namespace

Result<std::vector<fs::path>> files_of_run(const RunFiles& run, const std::string& ending) {
  std::vector<fs::path> files;
  std::error_code unreadable;
  for (fs::directory_iterator entry(run.directory, unreadable); !unreadable && entry != fs::directory_iterator();
       entry.increment(unreadable)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(ending) && is_of_run(run, name)) files.push_back(entry->path());
  }
  if (unreadable && unreadable != std::errc::no_such_file_or_directory)
    return std::unexpected(Error{"file.open", "cannot read the directory: " + unreadable.message(), run.directory.string()});
  std::ranges::sort(files);
  return files;
}

Result<std::vector<RecordedCopy>> copies_in_file(const fs::path& file) {
  const auto mapped = RODEO_TRY(base::MappedFile::open(file.string(), base::MappedFile::Access::random));
  const auto damaged = [&](const formats::DecodeError& error) {
    return std::unexpected(Error{"farm.bad_file", error.message(), file.string()});
  };
  auto reader = storage::EventFileReader::open(mapped.bytes());
  if (!reader) return damaged(reader.error());
  std::vector<RecordedCopy> copies;
  for (;;) {
    const auto block = reader->next();
    if (!block) return damaged(block.error());
    if (!*block) break;
    const auto event = formats::decode_event_header((*block)->stored, (*block)->stored.size());
    if (!event) return damaged(event.error().from((*block)->offset));
    const auto tags = formats::decode_stream_tags(formats::stream_tag_text(event->stream_tags));
    copies.push_back({event->global_id, std::max<std::uint64_t>(tags.size(), 1)});
  }
  RODEO_TRY(mapped.check());
  return copies;
}

fs::path remembered_ids_path(const fs::path& file) { return file.parent_path() / ("." + file.filename().string() + ".ids"); }

Result<void> remember_ids(const fs::path& file) {
  const auto copies = RODEO_TRY(copies_in_file(file));
  std::vector<std::uint64_t> words{kIdsMark, 0};
  for (const RecordedCopy& one : copies) {
    if (one.copies == 1) words.push_back(one.id);
  }
  words[1] = words.size() - 2;
  for (const RecordedCopy& one : copies) {
    if (one.copies > 1) words.insert(words.end(), {one.id, one.copies});
  }
  const fs::path path = remembered_ids_path(file);
  const std::string part = path.string() + ".part";
  RODEO_TRY(storage::write_file(part, std::as_bytes(std::span(words))));
  std::error_code error;
  fs::rename(part, path, error);
  if (error) return std::unexpected(Error{"file.write", "cannot rename: " + error.message(), part});
  return storage::flush_directory_of(path.string());
}

void read_back_ids(const RunFiles& run, RecordedEvents& ids, const std::function<void(std::string)>& say) {
  std::error_code error;
  fs::create_directories(run.directory, error);
  if (error)
    throw SetupError(Error{"readout.cannot_write", "cannot make the directory: " + error.message(), run.directory.string(),
                           "name a directory that you may write to"});
  const auto files_with = [&](const std::string& ending) {
    auto files = files_of_run(run, ending);
    if (!files) throw SetupError(files.error());
    return *std::move(files);
  };
  const auto open = files_with(".writing");
  for (const fs::path& file : open) {
    if (file.filename().string().find(kRecovered) != std::string::npos) fs::remove(file);
  }
  for (const fs::path& file : open) {
    if (file.filename().string().find(kRecovered) == std::string::npos) recover(run, file, say);
  }
  std::uint64_t files = 0;
  for (const fs::path& file : files_with(".data")) {
    const auto read = copies_in_file(file);
    if (!read) refuse_file(read.error(), file, "its ids cannot be read");
    add_copies(ids, *read, run, file.filename().string());
    ++files;
  }
  for (const auto& entry : fs::directory_iterator(run.directory)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with('.') || !name.ends_with(".data.ids") || !is_of_run(run, name.substr(1))) continue;
    const auto read = read_remembered(entry.path());
    if (!read) refuse_file(read.error(), entry.path(), "its ids cannot be read");
    add_copies(ids, *read, run, name.substr(1));
    ++files;
  }
  if (files > 0)
    say(fmt::format("run {} has {} here: {} are recorded already", run.run_number, base::counted(files, "file"),
                    base::counted(ids.size(), "id")));
  if (const std::uint64_t partly = ids.partial_events(); partly > 0)
    say(fmt::format("{} not in all their streams: missing copies are written when the events arrive again",
                    partly == 1 ? "1 of them is" : fmt::format("{} of them are", partly)));
}

}  // namespace rodeo::farm
