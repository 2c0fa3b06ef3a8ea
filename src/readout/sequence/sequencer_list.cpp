// The trigger's own list: what it adds to the numbers, and what it says of a chunk.
#include "readout/sequence/sequencer.h"

#include <algorithm>

namespace rodeo::readout {

Sequencer::Step Sequencer::judge_listed(State& state, const Waiting& x, const Waiting* y, bool final) {
  LinkSequence& link = *state.link;
  // The list has come as far as it will have said of this chunk what it has to say.
  const bool over = readers_[state.reader].over;
  const bool overdue = clock(state) - x.since > settings_.timeout_ns || (final && !over);
  const bool passed = list_ended_ || state.count == settings_.aside || (overdue && !list_held_) ||
                      (begun() && book_.end() - std::max(x.listed, run_first_) > 2 * settings_.reach);
  if (!begun()) return passed ? end(state, Verdict::not_listed) : wait_for_list(state);
  const bool fresh = !link.here.load(std::memory_order_relaxed);
  if (!fresh && !segments_.number(place_of(link))) cross(link);
  Sequence e = link.position();
  const Sequence remembered = book_.end() - std::min(book_.end(), book_.size());  // by the book, from here on
  const auto no_room = [&](Sequence number) {
    state.far = number;
    return !finds_room(state, number);
  };
  const auto too_early = [&] {
    if (state.count == settings_.aside) return end(state, Verdict::out_of_sequence);
    if (others_may_tell(state)) return Step::wait;
    return overdue || over_ ? end(state, Verdict::out_of_sequence) : Step::wait;
  };
  if (!fresh && x.id == link.expected && segments_.number(place_of(link)) &&
      !link.lapsed(oldest_, settings_.format)) {  // 16
    if (events_ != nullptr && e >= book_.end() && !passed) return wait_for_list(state);
    if (no_room(e)) return too_early();
    if (e == segments_.of(e).first) state.unsure = false;
    state.agreed = state.agreed || (e >= remembered && e < book_.end() && book_.at(e).state == TriggerBook::kListed &&
                                    book_.at(e).bcid == x.bcid);
    return take(state, e, state.unsure);
  }
  e = listed_after(std::max(e, remembered), 0);  // its segment may be over
  const std::uint64_t steps = std::uint64_t{settings_.step} * link.stride;
  const Sequence soon_after = listed_after(e, steps);
  const Sequence lowest =
      events_ != nullptr ? oldest_ : std::max({e, run_first_, oldest_});  // what is closed came without it
  const Sequence limit = std::max({front_beside(state), lowest, e, believed_}) + settings_.reach + steps;
  auto k = find_listed(lowest, book_.end(), x.id, &x.bcid);
  const bool exact = k && settings_.has_bcid && book_.at(*k).state == TriggerBook::kListed;
  // It does not come alone: what waits after it is held against what waits of the others.
  std::uint64_t waiting = 0;
  for (const State& other : states_) waiting = &other == &state ? waiting : std::max(waiting, other.count * link.stride);
  const std::uint64_t after = (state.count - state.placed - 1) * link.stride;
  const bool far = k && (*k > limit || (*k > soon_after && *k + after > limit + waiting));
  if (exact && !far && !no_room(*k)) {
    state.unsure = false;
    state.agreed = true;
    return take(state, *k);  // 17
  }
  if (y == nullptr && !passed && !final) return Step::wait;
  bool compares = true;
  const auto find_on = [&](Sequence from, Sequence to) {
    return y == nullptr ? std::nullopt : find_listed(from, std::min(to, book_.end()), y->id, compares ? &y->bcid : nullptr);
  };
  const auto without = find_on(e, soon_after + 1);
  if (!k && !without && y != nullptr && settings_.has_bcid && !state.agreed) {  // its BCIDs are others, and its ids go on
    k = find_listed(lowest, std::min(limit, book_.end()), x.id, nullptr);
    compares = !k || !find_listed(*k + 1, std::min(listed_after(*k, steps) + 1, book_.end()), y->id, nullptr);
    if (compares) k.reset();
  }
  if (!k) {
    if (!passed && !without) return wait_for_list(state);                                      // 20
    return end(state, was_delivered(state, x.id) ? Verdict::duplicate : Verdict::not_listed);  // 18, 19
  }
  if (y != nullptr && y->id == x.id) {
    const Sequence next = listed_after(*k, link.stride);
    if (next >= book_.end() && !passed) return wait_for_list(state);
    if (!find_on(*k + 1, next + 1)) return end(state, Verdict::duplicate);
  }
  const Sequence on = listed_after(*k, steps);
  const bool goes_on = y == nullptr || find_on(*k + 1, on + 1);
  if (without && (far || *k > soon_after || (!goes_on && (*without < *k || *k < e))))
    return end(state, was_delivered(state, x.id) ? Verdict::duplicate : Verdict::out_of_sequence);
  // Where ids repeat, the list may soon come to another event of this id.
  const std::uint64_t soon = 2 * settings_.reach;
  const auto listed_index = static_cast<std::uint64_t>(segments_.newest().place(book_.end()).index);
  const bool repeats =
      !settings_.format.has_ecr() && (x.id <= soon || ((x.id - listed_index) & settings_.format.low_mask()) <= soon);
  const bool skips = *k > (fresh ? run_first_ + settings_.reach + steps : soon_after);
  if (skips && !exact && repeats && !passed) return wait_for_list(state);
  if (!goes_on && !find_on(*k + 1, book_.end()))
    return passed || on + 1 < book_.end() ? end(state, Verdict::out_of_sequence) : wait_for_list(state);
  if (far && !(exact && in_window(state, *k)) && !followed_in_list(state, *k)) return too_early();  // 21
  if (no_room(*k)) return too_early();
  // Where another epoch has the id, too, the link may have been silent for longer, or not so long and be late: flagged until it crosses a reset
  // where the list has it.
  state.unsure =
      state.unsure || (skips && (find_listed(*k + 1, book_.end(), x.id, &x.bcid) || find_listed(e, lowest, x.id, &x.bcid)));
  return take(state, *k, state.unsure);
}

// So many events after this one; numbers that are free between two segments of the list are none.
Sequence Sequencer::listed_after(Sequence number, std::uint64_t events) const {
  for (;; ++number) {
    while (number < book_.end() && book_.at(number).state == TriggerBook::kNot && segments_.of(number).end < book_.end())
      number = segments_.of(number).end;
    if (events-- == 0) return number;
  }
}

// More than half of the live links have gone so far: the others are told.
bool Sequencer::followed_in_list(State& state, Sequence number) {
  const std::uint64_t room = settings_.reach + std::uint64_t{settings_.step} * state.link->stride;
  state.far = number;
  std::uint32_t there = 0;
  std::uint32_t alive = 0;
  for (const State& other : states_) {
    if (other.link->removed.load(std::memory_order_relaxed) || !live(other)) continue;
    ++alive;
    if (other.far + room >= number && other.far <= number + room) ++there;
  }
  if (2 * there <= alive) return false;
  believed_ = std::max(believed_, number);
  version_.fetch_add(1, std::memory_order_release);
  return true;
}

// The link's segment is over: it expects the first event of the next.
void Sequencer::cross(LinkSequence& link) const {
  const Segment& segment = segments_.of(link.position());
  if (link.position() < segment.first || segment.base == link.base) return;
  link.base = segment.base;
  link.resets = static_cast<std::uint32_t>(segment.resets);
  link.expected = settings_.format.of(segment.resets, link.position() - segment.base);
}

// One of the link's last chunks had this id.
bool Sequencer::was_delivered(const State& state, std::uint32_t id) const {
  const Sequence next = state.link->position();
  for (Sequence number = next; number-- > std::max(segments_[0].first, next - kHistory);) {
    const Segment& segment = segments_.of(number);
    if (delivered(state, number) && settings_.format.of(segment.resets, number - segment.base) == id) return true;
  }
  return false;
}

std::optional<Sequence> Sequencer::find_listed(Sequence from, Sequence to, std::uint32_t id,
                                               const std::uint16_t* bcid) const {
  const IdFormat& format = settings_.format;
  if (segments_.empty()) return std::nullopt;
  for (std::size_t i = segments_.find(from); i < segments_.size() && segments_[i].first < to; ++i) {
    const Segment& segment = segments_[i];
    const Sequence begin = std::max(from, segment.first);
    const Sequence end = std::min(to, segment.end);
    if (begin >= end || (format.has_ecr() && (segment.resets & 0xff) != id >> 24)) continue;
    const std::uint64_t ahead = (id - static_cast<std::uint64_t>(begin - segment.base)) & format.low_mask();
    for (Sequence number = begin + ahead; number < end; number += format.period()) {
      const TriggerBook::Entry& entry = book_.at(number);
      const bool differs =
          bcid != nullptr && settings_.has_bcid && entry.state == TriggerBook::kListed && entry.bcid != *bcid;
      if (entry.state != TriggerBook::kNot && !differs) return number;
    }
  }
  return std::nullopt;
}

bool Sequencer::anything_lives() const {
  return std::any_of(states_.begin(), states_.end(), [&](const State& state) {
    return !state.link->removed.load(std::memory_order_relaxed) && live(state);
  });
}

std::optional<Sequence> Sequencer::reached_by_two() const {
  Sequence first = 0;
  Sequence second = 0;
  std::size_t links = 0;
  for (const State& state : states_) {
    if (state.link->removed.load(std::memory_order_relaxed)) continue;
    ++links;
    const Sequence position = state.link->position();
    second = std::max(second, std::min(first, position));
    first = std::max(first, position);
  }
  return links < 2 ? std::nullopt : std::optional(second);
}

// A step of the list may leave out so many entries, and the one that waits comes with it.
bool Sequencer::has_room(Sequence oldest) const {
  if (!begun()) return true;
  const std::uint64_t most = 4 + settings_.step;
  const bool known = segments_.size() + 2 <= kListedSegments || segments_[1].first <= oldest;
  return known && book_.end() + most + gap() <= oldest + book_.size();
}

bool Sequencer::announce(const ListedTrigger& trigger, std::uint64_t now, Sequence oldest) {
  list_held_ = !has_room(oldest);
  if (list_held_) return false;
  segments_.forget(oldest);
  if (list_pending_) {
    const ListedTrigger pending = *list_pending_;
    list_pending_.reset();
    list(pending, &trigger, false);
  }
  list(trigger, nullptr, false);
  if (list_pending_) list_pending_since_ = now;
  return true;
}

void Sequencer::end_of_list() {
  if (list_pending_) list(*list_pending_, nullptr, true);
  list_pending_.reset();
  list_ended_ = true;
  version_.fetch_add(1, std::memory_order_release);
}

void Sequencer::settle_list(std::uint64_t now) {
  if (!list_pending_ || now < list_pending_since_ + settings_.timeout_ns / 4) return;
  const ListedTrigger pending = *list_pending_;
  list_pending_.reset();
  list(pending, nullptr, true);
}

// Judges an entry by the one after it, as a chunk is judged; with what is expected, and with the first of the next epoch, at once.
void Sequencer::list(const ListedTrigger& trigger, const ListedTrigger* following, bool final) {
  const auto append = [&](const Place& place, TriggerBook::State state) {
    const Sequence number = segments_.newest().base + static_cast<Sequence>(place.index);
    book_.append(number, {segments_.newest().l1id(number), trigger.bcid, trigger.type, state});
  };
  if (!begun()) {
    const Place first{kResetsOrigin + (trigger.id >> 24), trigger.id & 0xffffffU};
    if (following == nullptr && !final) {
      list_pending_ = trigger;
      return;
    }
    if (following != nullptr && !follows(first, extended(first, following->id), 1)) return;  // flipped
    begin(first);
    book_.begin(kOrigin);
    for (const State& state : states_) {
      state.link->base = segments_.newest().base;
      state.link->resets = static_cast<std::uint32_t>(first.resets);
      state.link->expected = settings_.format.of(first.resets, static_cast<std::uint64_t>(first.index));
    }
    append(first, TriggerBook::kListed);
    version_.fetch_add(1, std::memory_order_release);
    return;
  }
  const Place next = segments_.newest().place(book_.end());
  const Place k = extended(next, trigger.id);
  const bool plain = k == next || (k.resets == next.resets + 1 && k.index == 0);
  if (!plain && following == nullptr && !final) {
    list_pending_ = trigger;
    return;
  }
  const bool steps = near(next, k, 1);
  const Place after = following == nullptr ? k : extended(k, following->id);
  const bool goes_on = following == nullptr || (follows(k, after, 1) && (steps || after.resets == k.resets));
  if (!plain && (!goes_on || k < next || (final && !steps)))
    return;  // a flipped id: what it was is a skipped entry when the next comes
  if (k.resets != next.resets || !steps) {
    // The next segment, above all that links have brought of this one.
    const std::int64_t room = k.resets != next.resets && steps ? k.index : 0;
    if (k.resets == next.resets)
      skipped_.fetch_add(static_cast<std::uint64_t>(k.index - next.index), std::memory_order_relaxed);
    segments_.open({k.resets, k.index - room}, std::max(book_.end(), foremost()) + gap());
    version_.fetch_add(1, std::memory_order_release);
    for (std::int64_t index = k.index - room; index < k.index; ++index) append({k.resets, index}, TriggerBook::kSkipped);
  } else {
    for (std::int64_t index = next.index; index < k.index; ++index) append({k.resets, index}, TriggerBook::kSkipped);
  }
  append(k, TriggerBook::kListed);
}

}  // namespace rodeo::readout
