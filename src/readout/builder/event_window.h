// The window of open events of one worker: opens events as links reach them, fills slices, closes and publishes in order.
//
// Links are in order, so the events that all links have passed are the oldest: a slice is complete when its event is the
// oldest and no link remains. Events are therefore published strictly in sequence.
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

/// The calls of the window to its worker, once per event.
class EventWindowHost {
 public:
  /// Fills in the data of an event from its first chunk, which belongs to this link; returns slot flags.
  virtual std::uint16_t fill_event(Sequence sequence, const GbtLink& link, std::span<const std::byte> chunk,
                                   OpenEvent& event) = 0;
  /// Reports that this many bytes of a chunk in an event had no room.
  virtual void on_cut(std::size_t bytes) = 0;
  /// Says what the worker waits for: memory in consumers' hands (Sequencer::kConsumers), or peers that have not passed its
  /// events (kRoom). Those peers must not wait for this worker then. kNothing: it works.
  virtual void set_waiting(std::size_t with) = 0;

 protected:
  ~EventWindowHost() = default;
};

class EventWindow {
 public:
  struct Settings {
    std::uint32_t worker = 0;
    std::uint64_t size = 16384;  ///< number of open events; a power of two
  };

  EventWindow(const Settings& settings, std::unique_ptr<SliceStore> store, std::span<const GbtLink> links,
              const TriggerEntries* trigger_entries, Assembler& assembler, WorkerProgress& progress, std::atomic<bool>& held,
              EventWindowHost& host);

  /// Sets the lowest number of the run. Called before all other functions.
  void begin(Sequence first);
  bool begun() const { return head_ + 1 != 0; }

  Sequence oldest() const { return oldest_; }
  Sequence head() const { return head_; }
  /// The first number beyond the window.
  Sequence full() const { return oldest_ + settings_.size; }
  std::uint64_t open_events() const { return begun() ? head_ + 1 - oldest_ : 0; }
  RecyclePool<Slice>& pool() { return store_->pool(); }
  const RecyclePool<Slice>& pool() const { return store_->pool(); }
  const SliceStore& store() const { return *store_; }

  /// Sets the number of links in events that are opened from now on, after a link was removed or restored.
  void set_active_links(std::uint32_t links);

  /// Opens all events up to this one. A full window closes its oldest event as incomplete.
  void advance(Sequence to) {
    if (to > head_ || !begun()) open_to(to);
  }

  /// Appends a checked uniform run whose events are all open. Returns the number of chunks in fragments (all, unless slices
  /// overflow).
  std::uint32_t append_run(const AppendRun& run, const ChunkRun& chunks, std::uint32_t first_chunk, AppendKernel kernel) {
    const std::uint32_t done = kernel(ring_.get(), mask_, run);
    return done == run.count ? done : append_rest(run, chunks, first_chunk, done);
  }

  /// Appends a single chunk in the common case, with few instructions. True if the event is open and its slice has room.
  /// `header`: the record's header. `size`: at least 16 bytes, less than kLongChunkBytes.
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
    std::memcpy(out + 8 + size - 16, chunk + size - 16, 16);  // overlaps bytes that were copied already
    slot.write = out + record;
    slot.remaining -= 1;
    slot.bcid_difference = static_cast<std::uint16_t>(slot.bcid_difference | (slot.bcid ^ bcid));
    return true;
  }

  /// Appends one chunk to an open event and counts its link as done there. False if not even a header fits (overflow).
  bool append_one(Sequence sequence, const GbtLink& link, std::span<const std::byte> chunk, std::uint8_t felix_status,
                  std::uint8_t rodeo_status, std::uint16_t bcid, std::uint16_t flags);

  /// The BCID of an event's first chunk; empty if no chunk has arrived, or if the event was closed too long ago.
  std::optional<std::uint16_t> bcid(Sequence number) const {
    if (!begun() || number > head_ || number + settings_.size <= head_) return std::nullopt;
    const EventSlot& slot = ring_[number & mask_];
    return (slot.flags & slot_flag::kBcidKnown) != 0 ? std::optional(slot.bcid) : std::nullopt;
  }

  /// Counts the link as missing in the open events [from, to).
  void skip(Sequence from, Sequence to);

  /// Removes the link: open events from `from` on, to which it has not delivered, are built without it.
  void remove_link(Sequence from);

  /// Closes the oldest events while they lack no link. publish_closed() informs the peers.
  void publish_ready() {
    if (begun() && ready()) publish_run();
  }

  /// Informs the peers of closed events, and assembles the events that all workers have closed. Once per page is enough:
  /// each call moves a cache line to a peer's core and back.
  void publish_closed() {
    if (published_ != oldest_) publish_now();
  }

  /// Closes the oldest event as it is, with a reason (slot_flag), and informs the peers.
  void force_oldest(std::uint16_t reason);

  /// Called with each look at the clock. `end`: the first number that at most one link has reached. The age of events before
  /// `end` counts from the arrival of the second link: so a link whose numbers are too high does not make other links late.
  void set_second_front(Sequence end);

  /// True if the oldest event is older than the time-out (event clock, ns). If only the foremost link has reached the event,
  /// the other links must also have brought nothing for ten time-outs and for kLonePatienceNs.
  bool overdue(std::uint64_t timeout_ns) const;

  /// Sets both clocks: the event clock for opened events, and the steady time of the page's hand-over for closed events.
  void set_clocks(std::uint64_t event_clock, std::uint64_t page_time_ns) {
    event_clock_ = event_clock;
    page_time_ns_ = page_time_ns;
  }

 private:
  static constexpr std::uint64_t kLonePatienceNs = 100'000'000;

  // True if the oldest event lacks no link, and the trigger's list has reached it.
  bool ready() const {
    return oldest_ <= head_ && ring_[oldest_ & mask_].remaining == 0 &&
           (trigger_entries_ == nullptr || oldest_ < trigger_entries_->end());
  }
  void open_to(Sequence to);
  void publish_run();
  void publish_oldest();
  std::uint32_t append_rest(const AppendRun& run, const ChunkRun& chunks, std::uint32_t first_chunk, std::uint32_t done);
  void publish_now();
  template <typename Ready>
  void wait_for_room(std::uint64_t room, const Ready& ready);
  void apply_trigger_entry(EventSlot& slot, OpenEvent& event) const;
  void fill_absent(EventSlot& slot, const OpenEvent& event);
  void set_bit(std::span<std::uint32_t> bitmap, std::size_t link) const;
  bool make_buffer(Sequence wanted_by);

  const Settings settings_;
  const std::uint64_t mask_;
  const std::unique_ptr<SliceStore> store_;
  const std::span<const GbtLink> links_;
  const std::size_t first_link_;                 // position in the ROB of the worker's first link
  const TriggerEntries* const trigger_entries_;  // null if there is no list
  Assembler& assembler_;
  WorkerProgress& progress_;
  std::atomic<bool>& held_;  // true while the worker waits for consumers or for a slower peer
  EventWindowHost& host_;
  std::unique_ptr<EventSlot[]> ring_;
  std::unique_ptr<OpenEvent[]> events_;
  Sequence oldest_ = 0;
  Sequence published_ = 0;  // the oldest event when the peers were informed last
  Sequence head_ = static_cast<Sequence>(-1);
  std::uint32_t active_links_ = 0;
  Sequence reached_ = 0;          // the first number that at most one link reached
  std::uint64_t reached_at_ = 0;  // event clock when reached_ was set
  Sequence checked_end_ = 0;      // first number that was not open at the last look
  std::uint64_t event_clock_ = 0;
  std::uint64_t page_time_ns_ = 0;
  std::unordered_map<std::uint32_t, std::size_t> link_of_id_;  // link id to position; filled at construction
  std::vector<std::uint8_t> seen_;
  std::vector<std::uint32_t> absent_;   // bitmaps of the event being published: missing, then removed links
  std::vector<std::uint32_t> removed_;  // the bitmap of removed links for events from links_changed_at_ on
  Sequence links_changed_at_ = 0;       // first event that was opened after the last change of links
};

}  // namespace rodeo::readout
