// Playing an event file: its contents, and when each event is due.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/mapped_file.h"
#include "formats/full_event.h"
#include "formats/provable.h"
#include "rodeo/ids.h"
#include "rodeo/trigger.h"
#include "storage/event_file_reader.h"

namespace rodeo::input {

/// The rule for the time of an event.
enum class EventTiming : std::uint8_t {
  recorded,  ///< with the time differences of the file
  rate,      ///< at a given rate
  fast,      ///< as fast as the reader takes them
};

/// A link of the files. Link ids are unique within a ROB only.
struct PlayedLink {
  SourceId rob;
  std::uint32_t link_id = 0;

  auto operator<=>(const PlayedLink&) const = default;
};

/// Increasing event numbers: global ids where the file promises them, else L1 ids, continued where they wrap. A number is
/// within 2^32 of the one before, so one flipped bit changes no later number.
class EventNumbers {
 public:
  void begin(const storage::EventFileReader& file);
  std::int64_t of(const formats::FullEventView& event);
  void forget() { last_.reset(); }

 private:
  bool global_ = false;
  std::optional<std::int64_t> last_;
};

/// The files of one sequence, read once: links, number of events, first and last time. Throws SetupError. Constant after
/// construction.
class PlayedFiles {
 public:
  /// `follow`: also play the next files of the sequence, by the numbers in their names. `robs`: source ids of the ROBs to
  /// play; empty: all.
  PlayedFiles(const std::filesystem::path& first, bool follow, std::span<const std::uint32_t> robs);

  struct File {
    base::MappedFile mapped;
    std::filesystem::path path;
  };
  const std::vector<File>& files() const { return files_; }

  /// The links in the order of link ids; each id occurs once.
  const std::vector<PlayedLink>& links() const { return links_; }
  std::uint64_t blocks() const { return events_; }    ///< data blocks that decode: events, or one ROB's part of them
  std::uint64_t damaged() const { return damaged_; }  ///< number of blocks that do not decode, and of files without an end
  std::size_t largest_event() const { return largest_; }  ///< bytes of the largest event, decompressed
  std::uint64_t first_ns() const { return first_ns_; }    ///< time of the first event
  /// Time from the first event to the restart of a loop.
  std::uint64_t duration_ns() const { return last_ns_ - first_ns_ + (last_ns_ - first_ns_) / events_; }
  /// The lowest number of EventNumbers, and the count of numbers from it to the highest.
  std::int64_t lowest() const { return lowest_; }
  std::uint64_t span() const { return static_cast<std::uint64_t>(highest_ - lowest_) + 1; }

  /// Error "file.shrunk" if a file was cut short after it was opened.
  Result<void> check() const;

 private:
  void find_links(const File& file, std::set<PlayedLink>& links);
  void keep_links(const std::set<PlayedLink>& found, std::span<const std::uint32_t> robs);
  void count(const formats::FullEventView& event, std::size_t bytes);

  std::vector<File> files_;
  std::vector<PlayedLink> links_;
  std::uint64_t events_ = 0;
  std::uint64_t damaged_ = 0;
  std::size_t largest_ = 0;
  std::uint64_t first_ns_ = 0;
  std::uint64_t last_ns_ = 0;
  EventNumbers numbers_;
  std::int64_t lowest_ = 0;
  std::int64_t highest_ = 0;
};

/// The rules for playing the files; shared by all streams. The application's thread sets the members from start_ns on.
struct EventPlayback {
  EventTiming timing = EventTiming::recorded;
  double rate_hz = 0;
  bool loop = false;
  std::uint64_t passes = 0;           ///< passes of a loop; 0: until stop()
  RestampFunction restamp = nullptr;  ///< rewrites chunks of a loop; nullptr: write the chunk again as `provable`
  formats::Provable provable{1};
  std::uint64_t memory_bytes = 0;  ///< memory for pages of each stream

  std::atomic<std::uint64_t> start_ns{0};  ///< 0: not started
  static constexpr std::uint64_t kNoStop = ~std::uint64_t{0};
  /// Number of blocks, over all passes; no stream passes this place until `last` is set.
  std::atomic<std::uint64_t> hold_at{kNoStop};
  std::atomic<std::int64_t> last{-1};  ///< sequence number of the last event to deliver
  std::atomic<bool> planned{false};    ///< true: the streams end after `last`

  /// The due time of event `number` (over all passes), in ns after the start. `time_ns`: its time after the first event.
  std::uint64_t due_ns(std::uint64_t number, std::uint64_t time_ns) const;
};

}  // namespace rodeo::input
