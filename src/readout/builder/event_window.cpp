#include "readout/builder/event_window.h"

#include <bit>

namespace rodeo::readout {
EventWindow::EventWindow(const Settings& settings, std::unique_ptr<SliceStore> store, std::span<const GbtLink> links,
                         const TriggerEntries* trigger_entries, Assembler& assembler, WorkerProgress& progress,
                         std::atomic<bool>& held, EventWindowHost& host)
    : settings_(settings),
      mask_(settings.size - 1),
      store_(std::move(store)),
      links_(links),
      first_link_(assembler.first_link(settings.worker)),
      trigger_entries_(trigger_entries),
      assembler_(assembler),
      progress_(progress),
      held_(held),
      host_(host),
      ring_(std::make_unique<EventSlot[]>(settings.size)),
      events_(std::make_unique<OpenEvent[]>(settings.size)),
      active_links_(static_cast<std::uint32_t>(links.size())),
      seen_(links.size()),
      absent_(2 * assembler.absent_words(settings.worker)),
      removed_(absent_.size() / 2) {
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto header = std::bit_cast<ChunkHeader>(links[i].header);
    link_of_id_.emplace(header.link_id, i);
  }
}

void EventWindow::begin(Sequence first) {
  oldest_ = published_ = first;
  head_ = first - 1;
  progress_.passed.store(head_, std::memory_order_release);
}

void EventWindow::open_to(Sequence to) {
  while (head_ < to) {
    if (head_ + 1 - oldest_ >= settings_.size) {
      publish_ready();
      if (head_ + 1 - oldest_ >= settings_.size) force_oldest(slot_flag::kRingFull);
    }
    ++head_;
    EventSlot& slot = ring_[head_ & mask_];
    slot = EventSlot{};
    slot.links = static_cast<std::uint16_t>(active_links_);
    slot.remaining = active_links_;
    OpenEvent& event = events_[head_ & mask_];
    event.first = event.last = nullptr;
    event.extensions = 0;
    event.opened_at = event_clock_;
  }
}

// Waits until others return buffers or ring places. The cause is the peers if they owe at least half of `room`, else the
// consumers.
template <typename Ready>
void EventWindow::wait_for_room(std::uint64_t room, const Ready& ready) {
  if (ready()) return;
  held_.store(true, std::memory_order_relaxed);
  base::Backoff backoff;
  do {
    host_.set_waiting(2 * assembler_.events_owed(settings_.worker) >= room ? Sequencer::kRoom : Sequencer::kConsumers);
    backoff.idle();
  } while (!ready());
  held_.store(false, std::memory_order_relaxed);
  host_.set_waiting(Sequencer::kNothing);
}

bool EventWindow::make_buffer(Sequence wanted_by) {
  // The worker waits for buffers in consumers' hands (back-pressure). If all are in open events, the oldest must close.
  if (store_->open_buffers() < store_->pool().total()) {
    publish_closed();  // some buffers may be in events that wait only for this call
    // Divided by the most buffers of an event, so in doubt the peers count as the cause.
    wait_for_room((store_->pool().total() - store_->open_buffers()) / store_->most_buffers(),
                  [&] { return store_->pool().in_use() < store_->pool().total(); });
    return true;
  }
  if (oldest_ >= wanted_by) return false;
  force_oldest(slot_flag::kRingFull);
  return true;
}

std::uint32_t EventWindow::append_rest(const AppendRun& run, const ChunkRun& chunks, std::uint32_t first_chunk,
                                       std::uint32_t done) {
  const GbtLink& link = links_[chunks.link];
  std::uint32_t lost = 0;
  AppendKernel kernel = append_kernel(run.size, base::cpu_level());
  while (done < run.count) {
    // Only this chunk needs a new buffer; the fast kernel may continue with the next one.
    if (!append_one(run.first + done, link, chunks.chunk(first_chunk + done), 0, 0, run.bcids[done], 0)) ++lost;
    ++done;
    if (done == run.count) break;
    if (ring_[(run.first + done) & mask_].write == nullptr) continue;  // a leading link opens every event of its run
    AppendRun rest = run;
    rest.data = run.data + std::size_t{done} * run.stride;
    rest.count = run.count - done;
    rest.bcids = run.bcids + done;
    rest.first = run.first + done;
    done += kernel(ring_.get(), mask_, rest);
  }
  return run.count - lost;
}

bool EventWindow::append_one(Sequence sequence, const GbtLink& link, std::span<const std::byte> chunk,
                             std::uint8_t felix_status, std::uint8_t rodeo_status, std::uint16_t bcid, std::uint16_t flags) {
  // Making room may close events, even this one. The chunk is then late, and the caller counts it as overflow.
  EventSlot& slot = ring_[sequence & mask_];
  OpenEvent& event = events_[sequence & mask_];
  auto header = std::bit_cast<ChunkHeader>(link.header);
  header.felix_status = felix_status;
  header.rodeo_status = rodeo_status;
  if (slot.write == nullptr) flags |= host_.fill_event(sequence, link, chunk, event);
  SliceStore::Outcome outcome;
  std::size_t fits = chunk.size();
  while ((outcome = store_->append(slot, event, header, chunk, fits)) == SliceStore::Outcome::no_buffer) {
    if (!make_buffer(sequence)) {
      outcome = SliceStore::Outcome::overflow;
      flags |= slot_flag::kTruncated;
      break;
    }
  }
  slot.remaining -= 1;
  slot.flags = static_cast<std::uint16_t>(slot.flags | flags);
  if (outcome == SliceStore::Outcome::overflow) {
    slot.missing += 1;
    return false;
  }
  if (outcome == SliceStore::Outcome::truncated) host_.on_cut(chunk.size() - fits);
  if ((slot.flags & slot_flag::kBcidKnown) == 0) {
    slot.bcid = bcid;
    slot.flags |= slot_flag::kBcidKnown;
  }
  slot.bcid_difference = static_cast<std::uint16_t>(slot.bcid_difference | (slot.bcid ^ bcid));
  return true;
}

void EventWindow::skip(Sequence from, Sequence to) {
  for (Sequence sequence = std::max(from, oldest_); sequence < to; ++sequence) {
    EventSlot& slot = ring_[sequence & mask_];
    slot.remaining -= 1;
    slot.missing += 1;
  }
}

void EventWindow::remove_link(Sequence from) {
  for (Sequence sequence = std::max(from, oldest_); begun() && sequence <= head_; ++sequence) {
    EventSlot& slot = ring_[sequence & mask_];
    slot.remaining -= 1;
    slot.links -= 1;
  }
}

void EventWindow::set_active_links(std::uint32_t links) {
  active_links_ = links;
  links_changed_at_ = head_ + 1;
  std::ranges::fill(removed_, 0U);
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (links_[i].removed.load(std::memory_order_relaxed)) set_bit(removed_, i);
  }
}

void EventWindow::force_oldest(std::uint16_t reason) {
  EventSlot& slot = ring_[oldest_ & mask_];
  if (slot.remaining != 0) {
    // Links that have not reached this event count as missing.
    slot.missing = static_cast<std::uint16_t>(slot.missing + slot.remaining);
    slot.remaining = 0;
    slot.flags |= reason;
  }
  publish_oldest();
  publish_now();
}

void EventWindow::set_second_front(Sequence end) {
  if (end > reached_) {
    // Events opened after the last look are still young.
    const Sequence stale_end = std::min(end, checked_end_);
    for (Sequence s = std::max(reached_, oldest_); s < stale_end; ++s) events_[s & mask_].opened_at = event_clock_;
    reached_ = end;
    reached_at_ = event_clock_;
  }
  checked_end_ = head_ + 1;
}

bool EventWindow::overdue(std::uint64_t timeout_ns) const {
  if (open_events() == 0 || event_clock_ - events_[oldest_ & mask_].opened_at < timeout_ns) return false;
  return oldest_ < reached_ || event_clock_ - reached_at_ >= std::max(kLonePatienceNs, 10 * timeout_ns);
}

void EventWindow::publish_now() {
  published_ = oldest_;
  assembler_.publish(settings_.worker, oldest_ - 1, held_);
  progress_.passed.store(oldest_ - 1, std::memory_order_release);
}

void EventWindow::publish_run() {
  while (ready()) publish_oldest();
}

void EventWindow::publish_oldest() {
  EventSlot& slot = ring_[oldest_ & mask_];
  OpenEvent& event = events_[oldest_ & mask_];
  if (!assembler_.ready(oldest_)) {
    publish_now();  // the others may wait for this worker's events
    wait_for_room(settings_.size, [&] {
      assembler_.publish(settings_.worker, oldest_ - 1, held_);
      return assembler_.ready(oldest_);
    });
  }
  store_->close(slot, event);
  if (trigger_entries_ != nullptr) apply_trigger_entry(slot, event);
  if (slot.missing != 0 || oldest_ < links_changed_at_ || active_links_ < seen_.size()) fill_absent(slot, event);
  WorkerPart part;
  part.slice = event.first;
  part.handed_over_ns = page_time_ns_;
  part.l1id = event.l1id;
  part.rounds = event.rounds & GlobalIds::kRoundMask;
  part.trigger_type = event.trigger_type;
  part.chunks = static_cast<std::uint16_t>(slot.links - slot.missing);
  part.flags = slot.flags;
  part.bcid = slot.bcid;
  part.bcid_difference = slot.bcid_difference;
  const Sequence sequence = oldest_++;
  assembler_.pass(settings_.worker, sequence, part, absent_, held_);
}

// Fills in the data of the trigger's own list for the oldest event.
void EventWindow::apply_trigger_entry(EventSlot& slot, OpenEvent& event) const {
  if (oldest_ >= trigger_entries_->end()) return;
  const TriggerEntries::Entry& entry = trigger_entries_->at(oldest_);
  if (entry.state == TriggerEntries::kNoEvent) return;
  event.l1id = entry.l1id;
  event.rounds = entry.rounds;
  slot.flags |= entry.state == TriggerEntries::kSkipped ? slot_flag::kSkipped : slot_flag::kTriggered;
  if (entry.state == TriggerEntries::kSkipped) return;
  event.trigger_type = entry.type;
  if ((slot.flags & slot_flag::kBcidKnown) != 0)
    slot.bcid_difference = static_cast<std::uint16_t>(slot.bcid_difference | (slot.bcid ^ entry.bcid));
  slot.bcid = entry.bcid;
  slot.flags |= slot_flag::kBcidKnown;
}

// Notes the worker's links that are not in the event: those that did not deliver a chunk, and those that were removed.
void EventWindow::fill_absent(EventSlot& slot, const OpenEvent& event) {
  if (slot.missing == 0 && oldest_ >= links_changed_at_) {
    std::fill_n(absent_.begin(), removed_.size(), 0U);
    std::ranges::copy(removed_, absent_.begin() + static_cast<std::ptrdiff_t>(removed_.size()));
    slot.flags |= slot_flag::kLinksAbsent;
    return;
  }
  std::ranges::fill(absent_, 0U);
  std::ranges::fill(seen_, std::uint8_t{0});
  for (const Slice* slice = event.first; slice != nullptr; slice = slice->extension) {
    for_each_whole_chunk(std::span(slice->data, slice->used), [&](const ChunkHeader& header, auto, auto) {
      if (const auto found = link_of_id_.find(header.link_id); found != link_of_id_.end()) seen_[found->second] = 1;
    });
  }
  const std::span missing = std::span(absent_).first(removed_.size());
  const std::span removed = std::span(absent_).last(removed_.size());
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (seen_[i] != 0) continue;
    const bool was_removed = links_[i].removed.load(std::memory_order_relaxed) || oldest_ < links_[i].rejoin;
    set_bit(was_removed ? removed : missing, i);
    slot.flags |= slot_flag::kLinksAbsent;
  }
}

// The bitmap begins with the word of the ROB's bitmap that has this worker's first link.
void EventWindow::set_bit(std::span<std::uint32_t> bitmap, std::size_t link) const {
  const std::size_t bit = first_link_ + link;
  bitmap[bit / 32 - first_link_ / 32] |= 1U << (bit % 32);
}

}  // namespace rodeo::readout
