// The window of open events of one worker: opens events as links reach them, fills their slices, closes and publishes them in order.
//
// Links are in order, so the events that all links have passed are always the oldest: a slice is complete exactly when it is the
// oldest and nothing remains. Events are therefore published strictly in sequence.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/thread.h"
#include "formats/rod_data.h"
#include "readout/builder/assembler.h"
#include "readout/builder/gbt_link.h"
#include "readout/builder/slice_store.h"
#include "readout/builder/worker_progress.h"

namespace rodeo::readout {

/// What the window asks its worker, once per event.
class EventWindowHost {
 public:
  /// Fills in what the first chunk of an event, which this link brings, tells of it; returns slot flags.
  virtual std::uint16_t name(Sequence sequence, const GbtLink& link, std::span<const std::byte> chunk, OpenEvent& event) = 0;
  /// So many bytes of a chunk that is in an event had no room.
  virtual void cut(std::size_t bytes) = 0;
  /// The worker waits for memory that consumers have (Sequencer::kConsumers), or for peers to pass events that it has passed (kRoom), who must not
  /// wait for it meanwhile; or goes on (kNothing).
  virtual void set_waiting(std::size_t with) = 0;

 protected:
  ~EventWindowHost() = default;
};

class EventWindow {
 public:
  struct Settings {
    std::uint32_t worker = 0;
    std::uint64_t size = 16384;  ///< open events; a power of two
  };

  EventWindow(const Settings& settings, std::unique_ptr<SliceStore> store, std::span<const GbtLink> links,
              const TriggerBook* book, Assembler& assembler, WorkerProgress& progress, std::atomic<bool>& held,
              EventWindowHost& host);

  /// Sets the lowest number of the run; before anything else.
  void begin(Sequence first);
  bool begun() const { return head_ + 1 != 0; }

  Sequence oldest() const { return oldest_; }
  Sequence head() const { return head_; }
  /// The first number that has no place.
  Sequence full() const { return oldest_ + settings_.size; }
  std::uint64_t open_events() const { return begun() ? head_ + 1 - oldest_ : 0; }
  RecyclePool<Slice>& pool() { return store_->pool(); }
  const RecyclePool<Slice>& pool() const { return store_->pool(); }
  const SliceStore& store() const { return *store_; }

  /// A link was removed or restored: so many take part in events opened from now on.
  void set_active_links(std::uint32_t links);

  /// Opens all events up to this one. A full window closes its oldest as incomplete.
  void advance(Sequence to) {
    if (to > head_ || !begun()) open_to(to);
  }

  /// Appends a checked uniform run; all its events are open. Returns how many chunks got into a fragment (all, unless slices overflow).
  std::uint32_t append_run(const AppendRun& run, const ChunkRun& chunks, std::uint32_t first_chunk, AppendKernel kernel) {
    const std::uint32_t done = kernel(ring_.get(), mask_, run);
    return done == run.count ? done : append_rest(run, chunks, first_chunk, done);
  }

  /// The common case of a single chunk, in a few instructions: true if the event is open, in time and its slice has room. `header` is
  /// the record's; at least 16 bytes, fewer than kLongChunkBytes.
  bool append_short(Sequence sequence, std::uint64_t header, const std::byte* chunk, std::uint32_t size,
                    std::uint16_t bcid) {
    if (sequence > head_ || sequence < oldest_) return false;
    EventSlot& slot = ring_[sequence & mask_];
    const std::uint32_t record = formats::short_record_bytes(size);
    std::byte* const out = slot.write;
    if (static_cast<std::size_t>(slot.end - out) < record) return false;
    const std::uint32_t padding = 0;
    std::memcpy(out + record - 4, &padding, 4);
    std::memcpy(out, &header, 8);
    for (std::uint32_t at = 0; at + 16 <= size; at += 16) std::memcpy(out + 8 + at, chunk + at, 16);
    std::memcpy(out + 8 + size - 16, chunk + size - 16, 16);  // overlaps what is there already
    slot.write = out + record;
    slot.remaining -= 1;
    slot.bcid_difference = static_cast<std::uint16_t>(slot.bcid_difference | (slot.bcid ^ bcid));
    return true;
  }

  /// Appends one chunk to an open event and counts its link as done there. False: not even a header fits (overflow).
  bool append_one(Sequence sequence, const GbtLink& link, std::span<const std::byte> chunk, std::uint8_t felix_status,
                  std::uint8_t rodeo_status, std::uint16_t bcid, std::uint16_t flags);

  /// The BCID of an event's first chunk; nothing where none has come, or the event was closed too long ago.
  std::optional<std::uint16_t> bcid(Sequence number) const {
    if (!begun() || number > head_ || number + settings_.size <= head_) return std::nullopt;
    const EventSlot& slot = ring_[number & mask_];
    return (slot.flags & slot_flag::kBcidKnown) != 0 ? std::optional(slot.bcid) : std::nullopt;
  }

  /// Counts the link as missing in the open events [from, to).
  void skip(Sequence from, Sequence to);

  /// The link is removed: the open events from `from` on, which it has not delivered, are built without it.
  void leave(Sequence from);

  /// Closes every event at the old end that nothing is missing to any more; the peers hear of it with tell().
  void publish_ready() {
    if (begun() && ready()) publish_run();
  }

  /// Lets the peers know of the events closed so far, and assembles what all have closed. Once a page is enough: each word to a peer is
  /// a cache line that travels to its core and back.
  void tell() {
    if (told_ != oldest_) tell_now();
  }

  /// Closes the oldest event as it is, for a reason (slot_flag), and tells the peers.
  void force_oldest(std::uint16_t reason);

  /// Says, with each look at the clock, how far at least two links have come: the first number that only the foremost has reached, or
  /// none. Up to there an event's age counts from when the second link came; a link whose numbers run ahead makes nobody late.
  void reach(Sequence end);

  /// True if the oldest event is older than the time-out (event clock, ns). Where the foremost link is alone, also the others must have
  /// stood still for ten time-outs and kLonePatienceNs.
  bool overdue(std::uint64_t timeout_ns) const;

  /// Both clocks of what is done next: the event clock opens events, the steady time of the page's hand-over closes them.
  void set_clocks(std::uint64_t event_clock, std::uint64_t page_time_ns) {
    event_clock_ = event_clock;
    page_time_ns_ = page_time_ns;
  }

 private:
  static constexpr std::uint64_t kLonePatienceNs = 100'000'000;

  // Nothing is missing to the oldest, and the trigger's list has come to it.
  bool ready() const {
    return oldest_ <= head_ && ring_[oldest_ & mask_].remaining == 0 && (book_ == nullptr || oldest_ < book_->end());
  }
  void open_to(Sequence to);
  void publish_run();
  void publish_oldest();
  std::uint32_t append_rest(const AppendRun& run, const ChunkRun& chunks, std::uint32_t first_chunk, std::uint32_t done);
  void tell_now();
  template <typename Ready>
  void wait_for_room(std::uint64_t room, const Ready& ready);
  void look_up(EventSlot& slot, OpenEvent& event) const;
  void note_absent(EventSlot& slot, const OpenEvent& event);
  void set_bit(std::span<std::uint32_t> bitmap, std::size_t link) const;
  bool make_buffer(Sequence wanted_by);

  const Settings settings_;
  const std::uint64_t mask_;
  const std::unique_ptr<SliceStore> store_;
  const std::span<const GbtLink> links_;
  const std::size_t first_link_;   // of the ROB's
  const TriggerBook* const book_;  // null: no list
  Assembler& assembler_;
  WorkerProgress& progress_;
  std::atomic<bool>& held_;  // the worker waits for consumers or for a slower peer
  EventWindowHost& host_;
  std::unique_ptr<EventSlot[]> ring_;
  std::unique_ptr<OpenEvent[]> events_;
  Sequence oldest_ = 0;
  Sequence told_ = 0;  // the oldest when the peers were last told
  Sequence head_ = static_cast<Sequence>(-1);
  std::uint32_t active_links_ = 0;
  Sequence reached_ = 0;          // at least two links have come so far
  std::uint64_t reached_at_ = 0;  // on the event clock
  Sequence looked_at_ = 0;        // first number that was not open yet when the clock was last looked at
  std::uint64_t event_clock_ = 0;
  std::uint64_t page_time_ns_ = 0;
  std::unordered_map<std::uint32_t, std::size_t> link_of_id_;  // link id to position; filled at construction
  std::vector<std::uint8_t> seen_;
  std::vector<std::uint32_t> absent_;   // of the event being published: bitmaps of missing and of removed links
  std::vector<std::uint32_t> removed_;  // the second of them for events that nothing has happened to since they were opened
  Sequence settled_ = 0;                // the first of those
};

}  // namespace rodeo::readout
