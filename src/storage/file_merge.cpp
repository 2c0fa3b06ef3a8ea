#include "storage/file_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "formats/event_merge.h"
#include "formats/file_marks.h"
#include "storage/event_file_walk.h"
#include "storage/joined_records.h"
#include "storage/merge_plan.h"

namespace rodeo::storage {

using namespace formats;

namespace {

constexpr std::size_t kNamed = 20;

// The events of one writer: its files in order.
class Writer {
 public:
  explicit Writer(const WriterFiles& files) : files_(files) {}

  /// The next event; nothing after the last one.
  Result<std::optional<WalkedEvent>> next(const Progress& progress) {
    while (true) {
      if (!walk_) {
        if (at_ == files_.files.size()) return std::nullopt;
        walk_ = RODEO_TRY(EventFileWalk::open(files_.files[at_].path));
      }
      const std::uint64_t before = walk_->position();
      auto event = RODEO_TRY(walk_->next());
      add_progress(progress, walk_->position() - before);
      if (event) return event;
      walk_.reset();
      ++at_;
    }
  }

  const std::string& path() const { return files_.files[std::min(at_, files_.files.size() - 1)].path; }
  const std::string& name() const { return files_.name; }

 private:
  const WriterFiles& files_;
  std::size_t at_ = 0;
  std::optional<EventFileWalk> walk_;
};

class Merging {
 public:
  Merging(const MergeSettings& settings, MergeReport& report, const JoinedRecords& records, DerivedFiles& out)
      : settings_(settings),
        report_(report),
        records_(records),
        out_(out),
        plan_(report.writers.size(), settings.window),
        merger_(records.all_name_robs() ? records.robs() : std::set<SourceId>{}) {
    for (const WriterFiles& files : report.writers) writers_.emplace_back(files);
  }

  Result<void> run(const Progress& progress, const std::function<bool()>& stop) {
    while (true) {
      while (const auto writer = plan_.wants()) RODEO_TRY(read_event(*writer, progress));
      const auto together = plan_.next();
      if (together.empty()) break;
      RODEO_TRY(put(together));
      if (stop()) {
        return std::unexpected(Error{"data.interrupted", "interrupted: the new files were removed",
                                     settings_.output.directory.string(), "the files that were read are unchanged"});
      }
    }
    report_.most_held = plan_.most_held();
    return {};
  }

 private:
  void count(MergeCounter counter, std::uint64_t n = 1) { report_.counts[static_cast<std::size_t>(counter)] += n; }
  void name(std::string what) {
    ++report_.named_total;
    if (report_.named.size() < kNamed) report_.named.push_back(std::move(what));
  }

  Result<void> read_event(std::size_t index, const Progress& progress) {
    Writer& writer = writers_[index];
    std::optional<WalkedEvent> event = RODEO_TRY(writer.next(progress));
    if (!event) {
      plan_.end(index);
      return {};
    }
    count(MergeCounter::events_in);
    if (!event->whole) {
      count(MergeCounter::damaged_events);
      name(fmt::format("{}: event {} is damaged and left out: {}", writer.path(), event->number, event->damage));
      return {};
    }
    const L1Id id = event->fields.l1id;
    const std::uint64_t global_id = event->fields.global_id;
    const std::uint32_t number = event->number;
    if (report_.by_global_id ? plan_.add(index, global_id, std::move(*event)) : plan_.add(index, id, std::move(*event)))
      return {};
    return std::unexpected(
        Error{"data.order",
              fmt::format("event {} (L1 id {:#010x}) comes after later ones that are more than {} events away", number,
                          id.value, settings_.window),
              writer.path(), "nothing was written; look further: --window N"});
  }

  Result<void> put(std::span<MergePlan<WalkedEvent>::Member> together) {
    if (buffers_.size() < together.size()) buffers_.resize(together.size());
    pieces_.clear();
    std::set<std::size_t> there;
    for (std::size_t i = 0; i < together.size(); ++i) {
      Buffers& buffers = buffers_[i];
      // Both events decode: the walk has checked them.
      const FullEventView view = *decode_full_event(together[i].event.bytes(buffers.block));
      pieces_.push_back({view, *view.robs(buffers.payload)});
      there.insert(together[i].writer);
    }
    const bool whole = records_.all_name_robs() || there.size() == writers_.size();
    const MergedPieces merged = merger_.merge(pieces_, whole);
    RODEO_TRY(out_.append(merged.bytes));
    account(together, merged, whole);
    return {};
  }

  void account(std::span<MergePlan<WalkedEvent>::Member> together, const MergedPieces& merged, bool whole) {
    count(MergeCounter::events_out);
    count(MergeCounter::duplicate_events, merged.repeated.size());
    count(MergeCounter::contradicting_events, merged.contradicting.size());
    count(MergeCounter::merged_in, together.size() - merged.repeated.size() - merged.contradicting.size());
    count(MergeCounter::duplicate_robs, merged.repeated_robs.size());
    count(MergeCounter::contradicting_robs, merged.contradicting_robs.size());
    count(MergeCounter::missing_robs, merged.missing.size());
    count(MergeCounter::bcid_differs, merged.bcid_differs ? 1 : 0);
    count(MergeCounter::trigger_type_differs, merged.trigger_type_differs ? 1 : 0);
    count(merged.missing.empty() && whole ? MergeCounter::complete_events : MergeCounter::incomplete_events);
    const auto& fields = together.front().event.fields;
    const std::string id = report_.by_global_id ? fmt::format("global id {:#x}", fields.global_id)
                                                : fmt::format("L1 id {:#010x}", fields.l1id.value);
    for (const std::size_t i : merged.repeated) {
      name(fmt::format("{}: event {} ({}) is a duplicate", writers_[together[i].writer].name(), together[i].event.number,
                       id));
    }
    for (const SourceId rob : merged.contradicting_robs)
      name(fmt::format("{}: ROB {:#010x} occurs with different bytes: the first was kept", id, rob.value));
    if (merged.bcid_differs || merged.trigger_type_differs)
      name(fmt::format("{}: the fragments do not agree on the {}", id, merged.bcid_differs ? "BCID" : "trigger type"));
  }

  struct Buffers {
    std::vector<std::byte> block;
    std::vector<std::byte> payload;
  };

  const MergeSettings& settings_;
  MergeReport& report_;
  const JoinedRecords& records_;
  DerivedFiles& out_;
  MergePlan<WalkedEvent> plan_;
  EventMerger merger_;
  std::deque<Writer> writers_;
  std::vector<EventPiece> pieces_;
  std::vector<Buffers> buffers_;
};

}  // namespace

Result<MergeReport> merge_files(const MergeSettings& settings, const std::function<void(std::uint64_t)>& begin,
                                const Progress& progress, const std::function<bool()>& stop) {
  MergeReport report;
  JoinedRecords records;
  std::vector<FileOrigin> origins;
  std::uint64_t bytes = 0;
  for (const std::string& path : settings.files) {
    const EventFileWalk file = RODEO_TRY(EventFileWalk::open(path));
    origins.push_back(FileOrigin::of(path, file.header(), file.bytes()));
    records.add(file.header());
    bytes += file.bytes();
  }
  report.by_global_id = records.all_have_global_ids();
  report.writers = RODEO_TRY(by_writer(std::move(origins)));
  EventFileSettings settings_of_new = records.settings();
  settings_of_new.max_bytes = settings.max_bytes;
  settings_of_new.max_blocks = settings.max_events;
  settings_of_new.free_strings.push_back(
      fmt::format("{}={} files of {} writers", kMergedKey, settings.files.size(), report.writers.size()));
  begin(bytes);
  DerivedFiles out = RODEO_TRY(DerivedFiles::create(settings.output, settings_of_new));
  RODEO_TRY(Merging(settings, report, records, out).run(progress, stop));
  report.files = RODEO_TRY(out.keep());
  return report;
}

}  // namespace rodeo::storage
