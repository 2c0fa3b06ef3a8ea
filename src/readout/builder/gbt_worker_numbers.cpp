// A GBT worker and the numbers of its links: where the window begins, how far a link is followed, where epochs end.
#include <algorithm>

#include "readout/builder/gbt_worker.h"

namespace rodeo::readout {

void GbtWorker::begin_window() {
  window_.begin(*epochs_.run_first());
  balance_.begin(window_.oldest());
  for (TrackedLink& link : links_) link.next = std::max(window_.oldest(), link.rejoin);
}

TrackerDecision GbtWorker::decide(const TrackedLink& link, const LinkTracker& tracker, std::uint32_t id, bool has_following,
                                  std::uint32_t following) {
  if (!window_.begun()) {
    // The first chunk of the run defines where its window begins, here or, at the same moment, at a peer: only then can it be judged.
    TrackerDecision first;
    if (!epochs_.run_first()) first = tracker.decide(link, id, has_following, following, window_.window(), false);
    if (!epochs_.run_first()) return first;
    begin_window();
  }
  return tracker.decide(link, id, has_following, following, window_for(link),
                        link.trigger_list || majority_ahead() || nobody_follows(link));
}

Window GbtWorker::window_for(const TrackedLink& link) const {
  Window window = window_.window();
  for (const TrackedLink& other : links_) {
    if (&other != &link && other.synchronised && !other.trigger_list && !other.ahead)
      window.near = std::max(window.near, other.next);  // triggers run ahead of data
  }
  if (window.near == 0 && link.synchronised && active_links_ == 1) {
    // It is alone here; of the other workers the last is behind no leader.
    for (const WorkerProgress& peer : progress_) {
      const Sequence passed = peer.passed.load(std::memory_order_relaxed);
      if (&peer != &progress_[settings_.index] && passed != 0)
        window.near = window.near == 0 ? passed + 1 : std::min(window.near, passed + 1);
    }
  }
  if (link.trigger_list) return window;
  if (list_.exists() && links_.back().synchronised) {
    window.listed = true;
    window.limit = links_.back().next - 1;
    return window;
  }
  // Links deliver their runs one after another, and workers read theirs independently of each other.
  constexpr std::uint64_t kWorkersApart = 256;
  Sequence newest = window.head;
  for (const WorkerProgress& worker : progress_) newest = std::max(newest, worker.head.load(std::memory_order_relaxed));
  window.limit = newest + epochs_.gap() + settings_.step_limit + (progress_.size() > 1 ? kWorkersApart : 0);
  const Sequence full = window.oldest + window.size - 1;
  if (window.limit > full && !peers_are_beyond(full)) window.limit = full;
  return window;
}

// More than half of all links, with those of the other workers, are beyond the others: it is the others that are wrong. Links
// that have not come yet, or are silent, speak against nobody, if it is not a link alone that went there.
bool GbtWorker::majority_ahead() const {
  std::uint32_t ahead = 0;
  std::uint32_t active = 0;
  for (const WorkerProgress& worker : progress_) {
    ahead += worker.links_ahead.load(std::memory_order_relaxed);
    active += worker.active_links.load(std::memory_order_relaxed);
  }
  if (2 * ahead > active) return true;
  if (ahead < 2) return false;
  std::uint32_t near = links_near();
  for (const WorkerProgress& peer : progress_) {
    if (&peer != &progress_[settings_.index]) near += peer.links_near.load(std::memory_order_relaxed);
  }
  return ahead > near;
}

// More links of other workers than this one has are where it would have to give up its oldest events to follow.
bool GbtWorker::peers_are_beyond(Sequence full) const {
  std::uint32_t beyond = 0;
  for (const WorkerProgress& peer : progress_) {
    if (&peer != &progress_[settings_.index] && peer.head.load(std::memory_order_relaxed) > full)
      beyond += peer.links_near.load(std::memory_order_relaxed);
  }
  return beyond >= 2 && beyond > links_near();
}

// Links of this worker that go on where the window is: what they bring next is no event that was closed without them.
std::uint32_t GbtWorker::links_near() const {
  std::uint32_t near = 0;
  for (const TrackedLink& link : links_) {
    near += link.synchronised && !link.removed && !link.trigger_list && !link.ahead && link.next >= window_.oldest() ? 1 : 0;
  }
  return near;
}

// A link has long been beyond the others, and they have brought nothing new meanwhile: they are silent, and it is right.
bool GbtWorker::nobody_follows(const TrackedLink& link) const {
  constexpr std::uint64_t kPatienceNs = 1'000'000'000;
  return link.ahead && window_.head() == link.ahead_of &&
         event_clock_ - link.ahead_since >= std::max(kPatienceNs, 20 * settings_.timeout_ns);
}

void GbtWorker::set_ahead(TrackedLink& link, bool ahead) {
  link.ahead = ahead;
  if (ahead) {
    link.ahead_of = window_.head();
    link.ahead_since = event_clock_;
    if (const auto turn = strays_.turn()) {
      base::log_warning("link {:#018x} is beyond all other links and not followed there; its chunks are out of sequence{}",
                        builder_links_[position_of(link)].fid.value, turn.suffix());
    }
  }
  std::atomic<std::uint32_t>& count = progress_[settings_.index].links_ahead;
  count.store(count.load(std::memory_order_relaxed) + (ahead ? 1U : ~0U), std::memory_order_relaxed);
}

// Tells the links that are still in the old epoch where it ends.
void GbtWorker::limit_epochs(const Epoch& from, const Epoch& epoch, Sequence end) {
  const auto known = std::find_if(ended_epochs_.begin(), ended_epochs_.end(),
                                  [&](const auto& ended) { return ended.second != 0 && ended.first == from.resets; });
  if (known == ended_epochs_.end()) {
    ended_epochs_[ended_epoch_count_++ % ended_epochs_.size()] = {from.resets, end};
  } else {
    known->second = std::min(known->second, end);  // each link that crosses tells of it
  }
  for (TrackedLink& link : links_) {
    if (link.synchronised && link.epoch.resets < epoch.resets) link.epoch_end = std::min(link.epoch_end, end);
  }
}

// A peer's links may have crossed: what this worker's links bring of older epochs ends where the next one begins.
void GbtWorker::learn_of_epochs() {
  epochs_known_ = epochs_.opened();
  for (TrackedLink& link : links_) {
    if (!link.synchronised) continue;
    if (const auto next = epochs_.after(link.epoch.resets)) link.epoch_end = std::min(link.epoch_end, next->first);
  }
}

// The first number that at most one link of all workers has come to. Which of two is wrong nobody can say; they wait for each other, too.
// What the trigger's list names exists.
Sequence GbtWorker::reached_by_others() {
  Sequence first = 0;
  Sequence second = 0;
  const auto count = [&](Sequence next) {
    second = std::max(second, std::min(first, next));
    first = std::max(first, next);
  };
  for (const TrackedLink& link : links_) {
    if (link.synchronised && !link.removed && !link.trigger_list) count(link.next);
  }
  WorkerProgress& mine = progress_[settings_.index];
  mine.first.store(first, std::memory_order_relaxed);
  mine.second.store(second, std::memory_order_relaxed);
  std::uint32_t active = 0;
  for (const WorkerProgress& peer : progress_) {
    const std::uint32_t links = peer.active_links.load(std::memory_order_relaxed);
    active += links;
    if (&peer == &mine) continue;
    count(peer.first.load(std::memory_order_relaxed));
    count(peer.second.load(std::memory_order_relaxed));
    // A busy peer looks at the clock seldom, but says what it has passed.
    const Sequence passed = peer.passed.load(std::memory_order_relaxed);
    if (links > 1 && passed != 0) second = std::max(second, passed + 1);
  }
  Sequence end = window_.head() + 1;
  if (active >= 2) end = list_.exists() && links_.back().synchronised ? std::max(second, links_.back().next) : second;
  // A card that is behind and goes on is not late.
  return balance_.several() ? std::min(end, balance_.reached_by_all()) : end;
}

// The id of a link that was elsewhere is near zero.
bool GbtWorker::untold_restart(const TrackedLink& link, std::uint32_t id) const {
  if (!link.synchronised || id > settings_.step_limit) return false;
  const std::int64_t step = tracker_.format().distance(link.expected, id);
  return step < -std::int64_t{settings_.step_limit} || step > std::int64_t{settings_.step_limit};
}

void GbtWorker::warn_of_restart() {
  if (const auto turn = restarts_.turn()) {
    base::log_warning(
        "an L1 id of so few bits restarts near 0: an event counter reset cannot be told from a jump, and L1 ids may be "
        "wrong "
        "from here on; set readout.builder.trigger_list = true{}",
        turn.suffix());
  }
}

}  // namespace rodeo::readout
