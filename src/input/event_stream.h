// One worker's walk through event files: chunk records of its links become chunk runs again, in the worker's own thread, in
// poll().
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/arena.h"
#include "base/counters.h"
#include "formats/full_event.h"
#include "input/chunk_limit.h"
#include "input/delivered.h"
#include "input/event_playback.h"
#include "input/free_list.h"
#include "rodeo/input.h"

namespace rodeo::input {

/// Runs point into page memory, into which the chunks of a few events are copied, link by link.
class EventStream final : public DataStream, public ChunkLimit {
 public:
  /// `links[i]` is link i of the stream; none: the stream is the trigger's own list, one packet of each L1 id. Throws
  /// SetupError.
  EventStream(const PlayedFiles& files, const EventPlayback& playback, std::span<const PlayedLink> links);

  PollStatus poll(Page*& page) override;
  void release(Page& page) noexcept override { free_.give_back(static_cast<EventPage&>(page)); }

  /// The time of the last delivered event, or the present time while no more is due. With EventTiming::fast, events count as
  /// 10 us apart.
  std::uint64_t clock_ns() const override { return clock_ns_; }
  StreamCounters counters() const override { return delivered_.counters(); }
  std::uint32_t max_chunk_bytes() const override { return static_cast<std::uint32_t>(page_bytes_); }

  /// Chunks that a loop could not rewrite.
  std::uint64_t not_restamped() const { return not_restamped_.get(); }
  /// Number of events walked, and of blocks that are walked or about to be; over all passes. Any thread.
  std::uint64_t played_events() const { return events_.get(); }
  std::uint64_t claimed() const { return claimed_.load(); }
  /// The highest sequence number among the blocks that are walked or about to be.
  std::int64_t highest() const { return highest_.load(); }

 private:
  struct EventPage : Page {
    std::byte* memory = nullptr;
    std::vector<ChunkRun> run_storage;
    std::vector<ChunkEntry> entries;
    EventPage* next_free = nullptr;
  };
  /// A chunk that was found; it is not copied yet.
  struct Found {
    std::span<const std::byte> bytes;
    std::int64_t sequence = 0;
    LinkIndex link = 0;
    std::uint8_t status = 0;
  };
  /// The block that comes next.
  struct Next {
    formats::FullEventView event;
    std::size_t buffer = 0;  // buffer into which the block was decompressed
    std::int64_t sequence = 0;
    std::uint64_t due_ns = 0;
  };

  bool read_next_header();
  bool begin_pass();
  bool may_take(std::uint64_t now_ns);
  void append_event(std::size_t& bytes);
  void fill(EventPage& page);
  void fill_list(EventPage& page);
  void restamp(std::span<std::byte> chunk, const Found& found);

  const PlayedFiles& files_;
  const EventPlayback& playback_;
  std::vector<PlayedLink> links_;
  std::map<SourceId, std::unordered_map<std::uint32_t, LinkIndex>> indices_;  // indices by ROB and link id
  const bool trigger_list_;
  const std::size_t page_bytes_;

  base::Arena memory_;
  std::deque<EventPage> pages_;
  FreeList<EventPage> free_;

  std::optional<storage::EventFileReader> reader_;
  std::size_t file_ = 0;
  std::uint64_t pass_ = 0;
  EventNumbers numbers_;
  std::optional<Next> next_;
  std::int64_t last_sequence_ = -1;

  // Contents of the page that is being filled:
  std::vector<Found> found_;
  std::vector<std::vector<std::byte>> buffers_;  // decompressed events, two buffers for each of them
  std::size_t buffers_used_ = 0;
  std::vector<std::uint32_t> of_link_;  // number of chunks of each link
  std::vector<std::uint32_t> order_;

  bool ended_ = false;
  std::uint64_t clock_ns_ = 0;
  std::uint64_t taken_due_ns_ = 0;  // due time of the last event taken

  Delivered delivered_;
  base::Gauge<std::uint64_t> not_restamped_;
  base::Gauge<std::uint64_t> played_;  // number of blocks
  base::Gauge<std::uint64_t> events_;
  std::atomic<std::uint64_t> claimed_{0};
  std::atomic<std::int64_t> highest_{-1};
};

}  // namespace rodeo::input
