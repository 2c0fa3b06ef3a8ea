// A GBT worker beside its data: the clock of events, its peers, the end of the run, links that come and go.
#include <algorithm>

#include "base/clock.h"
#include "readout/builder/gbt_worker.h"

namespace rodeo::readout {

// The clock of events is looked at only while the input is drained, runs on the input's own time, and never in leaps: a machine that
// stopped for a while must not find everything overdue. What passed since the last look counts, also if there were pages between: with
// data in a steady rhythm there are no two looks in a row that find nothing.
void GbtWorker::tick(bool drained) {
  if (drained) {
    const std::uint64_t now = equipment_.stream->clock_ns();
    if (now > input_clock_) {
      const std::uint64_t leap = std::max<std::uint64_t>(settings_.timeout_ns / 4, 100'000);
      event_clock_ += std::min(now - input_clock_, leap);
    }
    input_clock_ = now;
    window_.set_clocks(event_clock_, base::steady_now_ns());
    follow_peers();
    if (balance_.several()) balance_.look(event_clock_);
    if (window_.begun()) {
      window_.reach(reached_by_others());
      progress_[settings_.index].links_near.store(links_near(), std::memory_order_relaxed);
    }
    if (!balance_.parked()) {  // what the sources that are held have not brought is not missing
      while (window_.overdue(settings_.timeout_ns)) window_.force_oldest(slot_flag::kTimedOut);
    }
    window_.publish_ready();
    window_.tell();
    open_events_.set(window_.open_events());
  }
}

// A worker that runs far ahead of a peer which is working as fast as it can gains nothing: its slices would only wait for the peer's, and their
// memory leave the cache. A peer that is drained is not waited for - its links may be silent.
bool GbtWorker::ahead_of_busy_peer() const {
  constexpr std::uint64_t kFar = 128;
  if (progress_.size() == 1) return false;
  const Sequence mine = progress_[settings_.index].passed.load(std::memory_order_relaxed);
  for (const WorkerProgress& peer : progress_) {
    const Sequence passed = peer.passed.load(std::memory_order_relaxed);
    if (passed != 0 && mine > passed + kFar && peer.busy.load(std::memory_order_relaxed)) return true;
  }
  return false;
}

// Events that none of this worker's links has delivered exist all the same if a peer has passed them.
void GbtWorker::follow_peers() {
  if (progress_.size() == 1) return;
  if (!window_.begun()) {
    if (!epochs_.run_first()) return;
    begin_window();
  }
  Sequence passed = 0;
  for (const WorkerProgress& peer : progress_) passed = std::max(passed, peer.passed.load(std::memory_order_acquire));
  const Sequence to = std::min(passed, window_.oldest() + settings_.window - 1);
  if (to > window_.head() && passed != 0) window_.advance(to);
}

void GbtWorker::finish() {
  for (std::size_t i = 0; i < builder_links_.size(); ++i) {
    if (links_[i].held_count != 0) settle_held(links_[i], i, false, 0);
  }
  poll_triggers();
  WorkerProgress& mine = progress_[settings_.index];
  const auto close_all = [&] {
    while (window_.open_events() != 0) window_.force_oldest(slot_flag::kRunEnded);
  };
  window_.set_clocks(event_clock_, base::steady_now_ns());
  do {
    window_.publish_ready();
    window_.tell();
    close_all();
  } while (poll_triggers());
  mine.busy.store(false, std::memory_order_relaxed);
  mine.ended.store(true, std::memory_order_release);
  // Peers may still be at work: pass what they pass, so that their events can be assembled.
  base::Backoff backoff;
  for (;;) {
    const bool all_ended = std::all_of(progress_.begin(), progress_.end(), [](const WorkerProgress& peer) {
      return peer.ended.load(std::memory_order_acquire);
    });
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
  open_events_.set(0);
}

void GbtWorker::command(std::size_t link, LinkState status) {
  const std::lock_guard lock(command_mutex_);
  commands_.emplace_back(link, status);
  commanded_.store(true, std::memory_order_release);
}

void GbtWorker::obey() {
  const std::lock_guard lock(command_mutex_);
  commanded_.store(false, std::memory_order_relaxed);
  for (const auto& [position, status] : commands_) {
    const bool removed = links_[position].removed;
    if (status == LinkState::removed && !removed) remove(position);
    if (status == LinkState::active && removed) take_back(position);
  }
  commands_.clear();
}

void GbtWorker::remove(std::size_t position) {
  TrackedLink& link = links_[position];
  if (link.held_count != 0) settle_held(link, position, false, 0);
  window_.leave(std::max(link.next, link.rejoin));
  if (link.ahead) set_ahead(link, false);
  link.removed = true;
  link.regular = false;
  --active_links_;
  window_.set_active_links(active_links_);
  progress_[settings_.index].active_links.store(active_links_, std::memory_order_relaxed);
  link_counters_[position].removed.set(true);
  counters_.add(WorkerCounter::removed);
  window_.publish_ready();
  window_.tell();
}

void GbtWorker::take_back(std::size_t position) {
  TrackedLink& link = links_[position];
  link.removed = false;
  link.synchronised = false;
  link.regular = false;
  // It takes part in events that are not open yet.
  link.rejoin = window_.begun() ? window_.head() + 1 : 0;
  link.next = link.rejoin;
  ++active_links_;
  window_.set_active_links(active_links_);
  progress_[settings_.index].active_links.store(active_links_, std::memory_order_relaxed);
  link_counters_[position].removed.set(false);
  counters_.add(WorkerCounter::taken_back);
}

FragmentBuilder::Link GbtWorker::link_status(std::size_t position) const {
  const LinkCounters& counters = link_counters_[position];
  const std::size_t link = assembler_.first_link(settings_.index) + position;
  return {.fid = builder_links_[position].fid,
          .state = counters.removed.get() ? LinkState::removed : LinkState::active,
          .chunks = counters.chunks.get(),
          .missing = assembler_.missing(link),
          .left_out = assembler_.left_out(link),
          .bad = counters.bad.get()};
}

double GbtWorker::pool_fill() const {
  return static_cast<double>(window_.pool().in_use()) / static_cast<double>(window_.pool().total());
}

}  // namespace rodeo::readout
