// How a worker waits for its peers, follows them, and ends.
#include <algorithm>

#include "base/clock.h"
#include "readout/builder/gbt_worker.h"

namespace rodeo::readout {

// A worker that is far ahead of a busy peer gains nothing: its slices would only wait for the peer's, and their memory would
// leave the cache. With few links, slices are small and more of them may wait, because a worker that stops too early sleeps
// longer than the peer needs to catch up. A worker does not wait for a drained peer, whose links may be silent.
bool GbtWorker::holds_back() {
  constexpr std::uint64_t kLeast = 128;
  constexpr std::uint64_t kChunks = 32 * 1024;
  if (progress_.size() == 1) return false;
  const std::uint64_t far = std::max(kLeast, kChunks / members_.size());
  const Sequence mine = progress_[settings_.index].passed.load(std::memory_order_relaxed);
  return std::any_of(progress_.begin(), progress_.end(), [&](const WorkerProgress& peer) {
    const Sequence passed = peer.passed.load(std::memory_order_relaxed);
    return passed != 0 && mine > passed + far && peer.busy.load(std::memory_order_relaxed) &&
           !peer.waiting.load(std::memory_order_relaxed);
  });
}

// ---- what only the links of others can tell

// True if the link's waiting chunks have little room left, or cover many events.
bool GbtWorker::needs_decision(std::size_t link) {
  if (waiting_.size(static_cast<LinkIndex>(link)) == 0) return false;
  if (waiting_.crowded(static_cast<LinkIndex>(link))) return true;
  const std::lock_guard lock(rob_.mutex);
  return rob_.sequencer.spans_far(members_[link]);
}

// Tells the sequencer what the worker waits for. While it waits, it reads no source. It never reads a parked source.
void GbtWorker::set_waiting(std::size_t with) {
  const bool waiting = with != Sequencer::kNothing;
  progress_[settings_.index].waiting.store(waiting, std::memory_order_relaxed);
  if (with == Sequencer::kRoom) set_waits_for(WaitsFor::peers);
  if (with == Sequencer::kConsumers || with == Sequencer::kNothing) set_waits_for(WaitsFor::nothing);
  if (rob_.sequencer.readers() == 1) return;
  const std::lock_guard lock(rob_.mutex);
  for (std::uint32_t source = 0; source < balance_.sources(); ++source) {
    const ChunkRun* const parked = balance_.parked_run(source);
    if (waiting || parked != nullptr)
      rob_.sequencer.set_waiting(first_reader_ + source, waiting ? with : members_[parked->link], oldest());
    else
      rob_.sequencer.clear_waiting(first_reader_ + source);
  }
}

// True if links that peers have not read yet may show the place of this link's chunks.
bool GbtWorker::peers_may_resolve(std::size_t link) {
  const std::lock_guard lock(rob_.mutex);
  return rob_.sequencer.may_be_resolved(members_[link], 0, first_reader_) ||
         rob_.sequencer.may_be_resolved(members_[link], rob_.first_readers[settings_.index + 1], rob_.sequencer.readers());
}

// True if the link presses, and this worker's own sources may show its place.
bool GbtWorker::sources_may_resolve(std::size_t link) {
  if (!needs_decision(link)) return false;
  const std::lock_guard lock(rob_.mutex);
  return rob_.sequencer.may_be_resolved(members_[link], first_reader_, first_reader_ + balance_.sources());
}

// Before a link's waiting chunks run out of room, the worker reads further in the list and waits for peers, as it does for
// consumers.
void GbtWorker::wait_for_peers(std::size_t link) {
  if (!needs_decision(link)) return;
  poll_list();
  if (progress_.size() == 1 || !peers_may_resolve(link)) return;
  progress_[settings_.index].busy.store(false, std::memory_order_relaxed);
  base::Backoff backoff;
  set_waits_for(WaitsFor::peers);
  do {
    set_waiting(members_[link]);  // set it again, because a wait for room in this loop has ended it
    backoff.idle();
    poll_list();
    rejudge_all();
    follow_peers();
    window_.publish_closed();
  } while (needs_decision(link) && peers_may_resolve(link) && !gives_up());
  set_waits_for(WaitsFor::nothing);
  set_waiting(Sequencer::kNothing);
  progress_[settings_.index].busy.store(true, std::memory_order_relaxed);
}

// Tells the sequencer that there is nothing more to read now.
void GbtWorker::report_drained() {
  const std::lock_guard lock(rob_.mutex);
  for (std::uint32_t source = 0; source < balance_.sources(); ++source) {
    if (balance_.parked_run(source) == nullptr) rob_.sequencer.set_drained(first_reader_ + source, event_clock_);
  }
}

void GbtWorker::share(ReaderTracks& tracks) {
  for (std::uint32_t source = 0; source < balance_.sources(); ++source)
    rob_.sequencer.share(first_reader_ + source, tracks, add_track(tracks, rob_.sequencer.spacing()));
}

// Tells the sequencer the places of its sources. If a peer holds the lock, the worker skips this turn.
void GbtWorker::report_page_end() {
  const std::unique_lock lock(rob_.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (std::uint32_t source = 0; source < balance_.sources(); ++source)
    rob_.sequencer.end_page(first_reader_ + source, equipment_.stream->clock_ns(),
                            drained() && balance_.parked_run(source) == nullptr);
}

// Called before a page is looked at. Only pages of files can show a silence.
void GbtWorker::report_page_begin() {
  bool after_silence = false;
  std::unique_lock lock(rob_.mutex, std::defer_lock);
  if (quiet_until()) lock.lock();
  for (std::uint32_t source = 0; source < balance_.sources(); ++source)
    after_silence |= rob_.sequencer.begin_page(first_reader_ + source, equipment_.stream->clock_ns(), quiet_until());
  if (lock.owns_lock()) lock.unlock();
  if (after_silence) wait_for_others();
}

Sequence GbtWorker::passed_by_peers() const {
  Sequence passed = 0;
  for (const WorkerProgress& worker : progress_) passed = std::max(passed, worker.passed.load(std::memory_order_acquire));
  return passed;
}

// An event without a chunk from this worker's links exists all the same if a peer has passed it.
void GbtWorker::follow_peers() {
  if (!window_.begun()) {
    if (!rob_.sequencer.begun()) return;
    begin_window();
  }
  if (progress_.size() == 1) return;
  const Sequence passed = passed_by_peers();
  // If a quarter of a period is longer than peers can be apart, peers show a silence of all links of this worker.
  if (format_.period() / 4 >= rob_.sequencer.settings().window) {
    for (std::uint32_t source = 0; source < balance_.sources(); ++source)
      rob_.sequencer.pace(first_reader_ + source).raise(passed + 1);
  }
  const Sequence to = std::min(passed, window_.full() - 1);
  if (to > window_.head() && passed != 0) window_.advance(to);
}

void GbtWorker::close_all() {
  while (window_.open_events() != 0) window_.force_oldest(slot_flag::kRunEnded);
}

// ---- the end

// Called when no more data come from this worker's links. `give_up`: their waiting chunks are given up.
void GbtWorker::finish_links(bool give_up) {
  for (std::size_t i = 0; i < builder_links_.size(); ++i) {
    {
      const std::lock_guard lock(rob_.mutex);
      if (give_up)
        rob_.sequencer.give_up(members_[i], decisions_);
      else
        rob_.sequencer.finish(members_[i], event_clock_, oldest(), decisions_);
    }
    apply_decisions(i);
  }
  follow_peers();
  window_.publish_ready();
  window_.publish_closed();
}

// False if no reader makes progress: then the waiting chunks must be judged by what is known.
bool GbtWorker::any_reader_proceeds() {
  const std::lock_guard lock(rob_.mutex);
  if (rob_.sequencer.any_reader_proceeds()) return true;
  for (std::size_t reader = 0; reader < rob_.sequencer.readers(); ++reader) rob_.sequencer.set_drained(reader);
  return false;
}

std::optional<std::size_t> GbtWorker::waiting_link() const {
  for (std::size_t i = 0; i < builder_links_.size(); ++i) {
    if (waiting_.size(static_cast<LinkIndex>(i)) != 0) return i;
  }
  return std::nullopt;
}

void GbtWorker::finish() {
  WorkerProgress& mine = progress_[settings_.index];
  const auto all = [&](auto flag) {
    return std::all_of(progress_.begin(), progress_.end(),
                       [&](const WorkerProgress& peer) { return (peer.*flag).load(std::memory_order_acquire); });
  };
  mine.busy.store(false, std::memory_order_relaxed);
  window_.set_clocks(event_clock_, base::steady_now_ns());
  poll_list();
  finish_links(false);
  mine.drained.store(true, std::memory_order_release);
  // Chunks may only wait to see the links of peers, or for room after them: wait for peers while they make progress.
  base::Backoff backoff;
  set_waits_for(WaitsFor::peers);
  for (auto link = waiting_link(); link && !all(&WorkerProgress::drained) && !gives_up(); link = waiting_link()) {
    set_waiting(members_[*link]);
    if (!any_reader_proceeds()) break;
    backoff.idle();
    poll_list();
    finish_links(false);
  }
  set_waiting(Sequencer::kNothing);
  if (rob_.sequencer.settings().listed && all(&WorkerProgress::drained)) {
    const std::lock_guard lock(rob_.mutex);
    rob_.sequencer.end_list();
  }
  for (int round = 0; round < 3; ++round) finish_links(round == 2);
  follow_peers();
  do {
    if (window_.begun() && rob_.sequencer.settings().listed && !gives_up()) {
      while (window_.head() + 1 < rob_.sequencer.trigger_entries().end()) {
        window_.advance(std::min(rob_.sequencer.trigger_entries().end() - 1, window_.full() - 1));
        close_all();
      }
    }
    window_.publish_ready();
    window_.publish_closed();
    close_all();
    poll_list();
  } while (window_.begun() && rob_.sequencer.settings().listed && !gives_up() &&
           window_.head() + 1 < rob_.sequencer.trigger_entries().end());
  mine.ended.store(true, std::memory_order_release);
  // Peers may still work: pass the same events as they do, so that these can be assembled.
  for (;;) {
    const bool all_ended = all(&WorkerProgress::ended);
    const Sequence before = window_.head();
    follow_peers();
    close_all();
    if (window_.head() != before) {
      backoff.reset();
    } else if (all_ended) {
      break;
    } else {
      backoff.idle();
    }
  }
}

}  // namespace rodeo::readout
