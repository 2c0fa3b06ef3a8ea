// An event file that is played: what is in it, and when each event is due.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/mapped_file.h"
#include "formats/full_event.h"
#include "formats/provable.h"
#include "rodeo/trigger.h"
#include "storage/event_file_reader.h"

namespace rodeo::input {

/// When events are due.
enum class EventTiming : std::uint8_t {
  recorded,  ///< as far from each other as their times in the file say
  rate,      ///< so many a second
  fast,      ///< as fast as they are taken
};

/// The files of one sequence, looked through once: which links they have, how many events, from when to when. Throws SetupError. Constant after that.
class PlayedFiles {
 public:
  /// `follow`: the files that follow in the sequence, by the numbers in their names, are played too.
  PlayedFiles(const std::filesystem::path& first, bool follow);

  struct File {
    base::MappedFile mapped;
    std::filesystem::path path;
  };
  const std::vector<File>& files() const { return files_; }

  const std::vector<std::uint32_t>& link_ids() const { return link_ids_; }
  std::uint64_t blocks() const { return events_; }        ///< data blocks that decode: events, or what a ROB has of them
  std::uint64_t damaged() const { return damaged_; }      ///< blocks that do not, and files without an end
  std::size_t largest_event() const { return largest_; }  ///< bytes, decompressed
  std::uint64_t first_ns() const { return first_ns_; }    ///< time of the first event
  /// From the first event to where a loop would begin again.
  std::uint64_t duration_ns() const { return last_ns_ - first_ns_ + (last_ns_ - first_ns_) / events_; }
  /// The lowest L1 id, and how many there are from it to the highest: ids go on counting where they wrap, from that of the first event.
  std::int64_t lowest() const { return lowest_; }
  std::uint64_t span() const { return static_cast<std::uint64_t>(highest_ - lowest_) + 1; }

  /// Error "file.shrunk" if one was cut short meanwhile.
  Result<void> check() const;

 private:
  void look_through(const File& file);
  void count(const formats::FullEventView& event, std::size_t bytes);

  std::vector<File> files_;
  std::vector<std::uint32_t> link_ids_;
  bool links_named_ = true;
  std::uint64_t events_ = 0;
  std::uint64_t damaged_ = 0;
  std::size_t largest_ = 0;
  std::uint64_t first_ns_ = 0;
  std::uint64_t last_ns_ = 0;
  std::optional<std::int64_t> last_;
  std::int64_t lowest_ = 0;
  std::int64_t highest_ = 0;
};

/// How they are played; shared by all streams. What is below start_ns is set by the application's thread.
struct EventPlayback {
  EventTiming timing = EventTiming::recorded;
  double rate_hz = 0;
  bool loop = false;
  std::uint64_t passes = 0;           ///< of a loop; 0: until it is stopped
  RestampFunction restamp = nullptr;  ///< looping; nullptr: the chunk is written anew as `provable`
  formats::Provable provable{1};
  std::uint64_t memory_bytes = 0;  ///< of pages, per stream

  std::atomic<std::uint64_t> start_ns{0};  ///< 0: not started
  static constexpr std::uint64_t kNoStop = ~std::uint64_t{0};
  std::atomic<std::uint64_t> hold_at{kNoStop};  ///< blocks, over all passes: no stream goes beyond until `last` is there
  std::atomic<std::int64_t> last{-1};           ///< sequence number of the last event that is delivered
  std::atomic<bool> planned{false};             ///< the streams end there

  /// Nanoseconds after the start at which event `number` is due, whose time is `time_ns` after the first; over all passes.
  std::uint64_t due_ns(std::uint64_t number, std::uint64_t time_ns) const;
};

}  // namespace rodeo::input
