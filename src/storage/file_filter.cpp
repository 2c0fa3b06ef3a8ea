#include "storage/file_filter.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "formats/file_marks.h"
#include "storage/joined_records.h"
#include "storage/writer_files.h"

namespace rodeo::storage {

using namespace formats;

namespace {

constexpr std::size_t kNamed = 20;
constexpr std::size_t kMostStreams = 64;  // limit for new files, because each stream has its own buffers

FilterCounter counter_of(FilterVerdict verdict) {
  switch (verdict) {
    case FilterVerdict::other_status: return FilterCounter::other_status;
    case FilterVerdict::other_stream: return FilterCounter::other_stream;
    case FilterVerdict::other_trigger_type: return FilterCounter::other_trigger_type;
    case FilterVerdict::other_l1id: return FilterCounter::other_l1id;
    default: return FilterCounter::kept;
  }
}

// The new files: one sequence, or one for each stream.
class Outputs {
 public:
  Outputs(const FilterSettings& settings, EventFileSettings like) : settings_(settings), like_(std::move(like)) {}

  Result<void> begin() {
    if (settings_.by_stream) return {};
    RODEO_TRY(of_stream({}));
    return {};
  }

  // Returns the number of copies written.
  Result<std::size_t> append(const FullEventView& event, std::span<const std::byte> bytes) {
    std::vector<std::string> streams{std::string()};
    if (settings_.by_stream) {
      streams = streams_of(event);
      // Keeps only the wanted streams, if the filter names some.
      if (!settings_.filter.streams.empty())
        std::erase_if(streams, [&](const std::string& stream) { return !settings_.filter.streams.contains(stream); });
      if (streams.empty()) streams.emplace_back("no_stream");
    }
    for (const std::string& stream : streams) {
      DerivedFiles* const files = RODEO_TRY(of_stream(stream));
      RODEO_TRY(files->append(bytes));
    }
    return streams.size();
  }

  // Keeps the files of all streams, or of none.
  Result<std::vector<FragmentConsumer::File>> keep() {
    for (auto& [stream, files] : files_) RODEO_TRY(files.close());
    std::vector<FragmentConsumer::File> all;
    for (auto& [stream, files] : files_) {
      const auto kept = RODEO_TRY(files.keep());
      all.insert(all.end(), kept.begin(), kept.end());
    }
    return all;
  }

 private:
  Result<DerivedFiles*> of_stream(const std::string& stream) {
    if (const auto known = files_.find(stream); known != files_.end()) return &known->second;
    if (files_.size() == kMostStreams) {
      return std::unexpected(Error{"data.streams", fmt::format("the events belong to more than {} streams", kMostStreams),
                                   settings_.output.directory.string(), "choose some with --stream"});
    }
    DerivedTarget target = settings_.output;
    EventFileSettings like = like_;
    if (!stream.empty()) {
      // A name in an event is untrusted: it must not lead to another directory.
      std::string name = stream;
      for (char& c : name) {
        if (c == '/' || c == '\0') c = '_';
      }
      target.name += "." + name;
      const std::size_t bar = stream.find('_');
      like.stream_type = stream.substr(0, bar);
      like.stream_name = bar == std::string::npos ? "" : stream.substr(bar + 1);
    }
    DerivedFiles made = RODEO_TRY(DerivedFiles::create(target, std::move(like)));
    return &files_.emplace(stream, std::move(made)).first->second;
  }

  const FilterSettings& settings_;
  EventFileSettings like_;
  std::map<std::string, DerivedFiles> files_;
};

}  // namespace

Result<FilterReport> filter_files(const FilterSettings& settings, const Progress& progress,
                                  const std::function<bool()>& stop) {
  JoinedRecords records;
  std::vector<FileOrigin> origins;
  for (const std::string& path : settings.files) {
    const EventFileWalk file = RODEO_TRY(EventFileWalk::open(path));
    origins.push_back(FileOrigin::of(path, file.header(), file.bytes()));
    records.add(file.header());
  }
  RODEO_TRY(by_writer(std::move(origins)));  // checks that the files are of one run, and no file occurs twice
  EventFileSettings like = records.settings();
  like.max_bytes = settings.max_bytes;
  like.max_blocks = settings.max_events;
  like.free_strings.push_back(fmt::format("{}={}", kFilteredKey, settings.says));

  FilterReport report;
  const auto count = [&](FilterCounter counter, std::uint64_t n = 1) {
    report.counts[static_cast<std::size_t>(counter)] += n;
  };
  Outputs outputs(settings, std::move(like));
  RODEO_TRY(outputs.begin());
  std::vector<std::byte> buffer;
  for (const std::string& path : settings.files) {
    EventFileWalk file = RODEO_TRY(EventFileWalk::open(path));
    while (true) {
      const std::uint64_t before = file.position();
      const std::optional<WalkedEvent> event = RODEO_TRY(file.next());
      add_progress(progress, file.position() - before);
      if (!event) break;
      count(FilterCounter::events_in);
      // The function must see every event, so that it and this loop stay in step.
      const Wanted wanted = settings.wants ? RODEO_TRY(settings.wants(*event)) : Wanted::yes;
      if (!event->whole) {
        count(FilterCounter::damaged_events);
        if (report.named.size() < kNamed)
          report.named.push_back(
              fmt::format("{}: event {} is damaged and left out: {}", path, event->number, event->damage));
        continue;
      }
      const std::span<const std::byte> bytes = event->bytes(buffer);
      const FullEventView view = *decode_full_event(bytes);
      FilterCounter verdict = counter_of(settings.filter.judge(view));
      if (wanted != Wanted::yes && verdict == FilterCounter::kept)
        verdict = wanted == Wanted::no ? FilterCounter::refused : FilterCounter::timed_out;
      count(verdict);
      if (verdict == FilterCounter::kept) count(FilterCounter::events_out, RODEO_TRY(outputs.append(view, bytes)));
      if (stop()) {
        return std::unexpected(Error{"data.interrupted", "interrupted: the new files were removed",
                                     settings.output.directory.string(), "the files that were read are unchanged"});
      }
    }
  }
  report.files = RODEO_TRY(outputs.keep());
  return report;
}

}  // namespace rodeo::storage
