// The trigger's own list: which numbers it appends, and what it decides on a chunk.
#include "readout/sequence/sequencer.h"

#include <algorithm>

namespace rodeo::readout {

// A chunk, and where the list has it.
struct Sequencer::InList {
  const Waiting& chunk;
  const Waiting* following;
  bool overdue;  // it has waited long enough
  bool passed;   // the list has gone on far enough to decide on the chunk
  bool fresh;    // nothing is known of the link
  std::uint64_t steps;

  Sequence expected = 0;
  Sequence soon_after = 0;             // `step` events after `expected`
  Sequence limit = 0;                  // numbers above are not reachable
  std::optional<Sequence> place = {};  // where the list has the chunk
  bool exact = false;                  // `place` has its BCID, too
  bool far = false;                    // `place` is not reachable
  bool by_bcid = true;                 // the BCID of the following chunk is compared, too
};

Sequencer::Step Sequencer::judge_listed(State& state, const Waiting& chunk, const Waiting* following, bool final) {
  LinkSequence& link = *state.link;
  const bool overdue = clock(state) - chunk.since > settings_.timeout_ns || (final && !readers_[state.reader].over);
  InList of{.chunk = chunk,
            .following = following,
            .overdue = overdue || (over_ && events_ == nullptr),
            .passed = list_ended_ || state.count == settings_.aside || (overdue && !list_held_) ||
                      (begun() && book_.end() - std::max(chunk.listed, run_first_) > 2 * settings_.reach),
            .fresh = !link.here.load(std::memory_order_relaxed),
            .steps = std::uint64_t{settings_.step} * link.stride};
  if (!begun()) return of.passed ? end(state, Verdict::not_listed) : wait_for_list(state);
  if (!of.fresh && !is_in_segment(link)) cross(link);
  if (!of.fresh && chunk.id == link.expected && is_in_segment(link) && !link.lapsed(oldest_, settings_.format))
    return take_expected(state, of);
  look_up(state, of);
  if (of.exact && !of.far && finds_place(state, *of.place)) {
    state.unsure = false;
    state.agreed = true;
    return take(state, *of.place);  // 17
  }
  if (following == nullptr && !of.passed && !final) return Step::wait;
  if (!of.place && following != nullptr && settings_.has_bcid && !state.agreed) look_up_by_id(of);
  return of.place ? judge_present(state, of) : judge_absent(state, of);
}

// 16
Sequencer::Step Sequencer::take_expected(State& state, const InList& of) {
  const Sequence expected = state.link->position();
  if (events_ != nullptr && expected >= book_.end() && !of.passed) return wait_for_list(state);
  if (!finds_place(state, expected)) return wait_for_others(state, of);
  const bool remembered = expected < book_.end() && expected + book_.size() >= book_.end();
  // It crosses a reset where the list has it. A link that comes by free numbers does not.
  const bool crosses = remembered && expected == segments_.of(expected).first;
  if (crosses && book_.at(expected - 1).state != TriggerBook::kNot) state.unsure = false;
  state.agreed = state.agreed || (remembered && book_.at(expected).state == TriggerBook::kListed &&
                                  book_.at(expected).bcid == of.chunk.bcid);
  return take(state, expected, state.unsure);
}

void Sequencer::look_up(const State& state, InList& of) const {
  const LinkSequence& link = *state.link;
  const Sequence remembered = book_.end() - std::min(book_.end(), book_.size());
  of.expected = listed_after(std::max(link.position(), remembered), 0);  // its segment may be over
  of.soon_after = listed_after(of.expected, of.steps);
  of.limit = std::max({front_beside(state), lowest_listed(of), of.expected, believed_}) + settings_.reach + of.steps;
  of.place = find_listed(lowest_listed(of), book_.end(), of.chunk.id, &of.chunk.bcid);
  of.exact = of.place && settings_.has_bcid && book_.at(*of.place).state == TriggerBook::kListed;
  // The chunks that wait after it are compared with those that wait of the other links.
  std::uint64_t waiting = 0;
  for (const State& other : states_) waiting = &other == &state ? waiting : std::max(waiting, other.count * link.stride);
  const std::uint64_t after = (state.count - state.placed - 1) * link.stride;
  of.far = of.place && (*of.place > of.limit || (*of.place > of.soon_after && *of.place + after > of.limit + waiting));
}

// The lowest number that the chunk may have: a closed event cannot get it.
Sequence Sequencer::lowest_listed(const InList& of) const {
  return events_ != nullptr ? oldest_ : std::max({of.expected, run_first_, oldest_});
}

// For a link whose BCIDs have never agreed, but whose ids go on.
void Sequencer::look_up_by_id(InList& of) const {
  if (find_following(of, of.expected, of.soon_after + 1)) return;
  const auto place = find_listed(lowest_listed(of), std::min(of.limit, book_.end()), of.chunk.id, nullptr);
  of.by_bcid = false;
  if (place && find_following(of, *place + 1, listed_after(*place, of.steps) + 1))
    of.place = place;
  else
    of.by_bcid = true;
}

std::optional<Sequence> Sequencer::find_following(const InList& of, Sequence from, Sequence to) const {
  if (of.following == nullptr) return std::nullopt;
  return find_listed(from, std::min(to, book_.end()), of.following->id, of.by_bcid ? &of.following->bcid : nullptr);
}

// True if one of the next chunks that wait is where the link is expected.
bool Sequencer::goes_on_later(const State& state, const InList& of) const {
  const std::size_t last = std::min<std::size_t>(state.count, state.placed + 1 + settings_.step);
  for (std::size_t i = state.placed + 1; i < last; ++i) {
    const Waiting& later = at(state, i);
    const std::uint16_t* const bcid = of.by_bcid ? &later.bcid : nullptr;
    if (find_listed(of.expected, std::min(of.soon_after + 1, book_.end()), later.id, bcid)) return true;
  }
  return false;
}

// 18, 19, 20
Sequencer::Step Sequencer::judge_absent(State& state, const InList& of) {
  if (!of.passed && !goes_on_later(state, of)) return wait_for_list(state);
  return end(state, was_delivered(state, of.chunk.id) ? Verdict::duplicate : Verdict::not_listed);
}

Sequencer::Step Sequencer::judge_present(State& state, const InList& of) {
  const Sequence place = *of.place;
  if (of.following != nullptr && of.following->id == of.chunk.id) {  // 3, unless the list goes on with the same id
    const Sequence next = listed_after(place, state.link->stride);
    if (next >= book_.end() && !of.passed) return wait_for_list(state);
    if (!find_following(of, place + 1, next + 1)) return end(state, Verdict::duplicate);
  }
  const bool repeats_last = settings_.format.advance(of.chunk.id, state.link->stride) == state.link->expected;
  if (repeats_last && of.following == nullptr && !of.exact && !of.fresh && place > of.soon_after)
    return end(state, Verdict::duplicate);  // 3
  const Sequence soon_after_place = listed_after(place, of.steps);
  const bool goes_on = of.following == nullptr || find_following(of, place + 1, soon_after_place + 1);
  const auto without = of.by_bcid ? find_following(of, of.expected, of.soon_after + 1) : std::nullopt;
  if (without && (of.far || place > of.soon_after || (!goes_on && (*without < place || place < of.expected))))
    return end(state, was_delivered(state, of.chunk.id) ? Verdict::duplicate : Verdict::out_of_sequence);  // 18, 19
  // Where ids repeat, the list may soon come to another event of this id.
  const bool leaps = place < of.expected || place > (of.fresh ? run_first_ + settings_.reach + of.steps : of.soon_after);
  if (leaps && !of.exact && !of.passed && repeats_soon(of.chunk.id)) return wait_for_list(state);
  const bool doubtful = leaps && !of.exact && !of.fresh;
  const bool repeats = doubtful && was_delivered(state, of.chunk.id);
  const bool senseless = doubtful && events_ == nullptr && (state.link->history & kDense) == kDense;
  const bool alone = of.following == nullptr && (repeats || senseless);
  if (alone && !of.overdue && !readers_[state.reader].over && state.count != settings_.aside) return Step::wait;
  if (repeats && alone) return end(state, Verdict::duplicate);  // 18
  if (!goes_on && (repeats || senseless || !find_following(of, place + 1, book_.end()))) {
    if (!of.passed && soon_after_place + 1 >= book_.end()) return wait_for_list(state);
    return end(state, repeats ? Verdict::duplicate : Verdict::out_of_sequence);  // 18, 19
  }
  const bool fits = !of.far || (of.exact && in_window(state, place)) || followed_in_list(state, place);
  if (!fits || !finds_place(state, place)) return wait_for_others(state, of);  // 21
  // If another epoch has the id, too, the link may have been silent for longer, or for less and be late: it is flagged until
  // it crosses a reset where the list has one.
  state.unsure = state.unsure || (alone && !settings_.format.has_ecr()) ||
                 (leaps && (find_listed(place + 1, book_.end(), of.chunk.id, &of.chunk.bcid) ||
                            find_listed(of.expected, lowest_listed(of), of.chunk.id, &of.chunk.bcid)));
  return take(state, place, state.unsure);  // 17
}

// True if the list is about to come to this id, again or for the first time.
bool Sequencer::repeats_soon(std::uint32_t id) const {
  if (settings_.format.has_ecr()) return false;
  const std::uint64_t soon = 2 * settings_.reach;
  const auto listed = static_cast<std::uint64_t>(segments_.newest().place(book_.end()).index);
  return id <= soon || ((id - listed) & settings_.format.low_mask()) <= soon;
}

// True if the window has room for it; else the chunk waits.
bool Sequencer::finds_place(State& state, Sequence number) {
  state.far = number;
  return finds_room(state, number);
}

Sequencer::Step Sequencer::wait_for_others(State& state, const InList& of) {
  const bool has_room = state.count != settings_.aside;
  return has_room && (others_may_tell(state) || !of.overdue) ? Step::wait : end(state, Verdict::out_of_sequence);
}

// The number of the event this many events later. Free numbers between two segments of the list are not events.
Sequence Sequencer::listed_after(Sequence number, std::uint64_t events) const {
  for (;; ++number) {
    while (number < book_.end() && book_.at(number).state == TriggerBook::kNot && segments_.of(number).end < book_.end())
      number = segments_.of(number).end;
    if (events-- == 0) return number;
  }
}

// True if more than half of the live links have gone so far. Then the others are judged again.
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

// The link's segment is over: the link expects its next number in the next one.
void Sequencer::cross(LinkSequence& link) const {
  const Segment& segment = segments_.of(link.position());
  if (link.position() < segment.first) return;  // forgotten
  enter(link, segment);
}

// True if one of the link's last chunks had this id.
bool Sequencer::was_delivered(const State& state, std::uint32_t id) const {
  const Sequence next = state.link->position();
  const Sequence lately = next - std::min<std::uint64_t>(kHistory, settings_.format.period() / 4);
  for (Sequence number = next; number-- > std::max(segments_[0].first, lately);) {
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

// An entry may append up to `most` numbers: the entries of a leap and those that they leave out, and the entry that waits.
bool Sequencer::has_room(Sequence oldest) const {
  if (!begun()) return true;
  const std::uint64_t most = kLeap * (1 + settings_.step) + 1;
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

// Judges an entry by the next one, as for chunks. The expected entry, and the first of the next epoch, are taken at once.
void Sequencer::list(const ListedTrigger& trigger, const ListedTrigger* following, bool final) {
  if (!begun()) return begin_list(trigger, following, final);
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
    return;  // a flipped id: appended as skipped when the next comes
  if (!steps) return leap(next, k, trigger);
  leap_.clear();
  if (k.resets != next.resets) open_listed({k.resets, 0}, k);
  append(k, trigger);
}

void Sequencer::begin_list(const ListedTrigger& trigger, const ListedTrigger* following, bool final) {
  const Place first{kResetsOrigin + (trigger.id >> 24), trigger.id & 0xffffffU};
  if (following == nullptr && !final) {
    list_pending_ = trigger;
    return;
  }
  if (following != nullptr && !follows(first, extended(first, following->id), 1)) return;  // flipped
  begin(first);
  book_.begin(kOrigin);
  for (const State& state : states_) enter(*state.link, segments_.newest());
  append(first, trigger);
  version_.fetch_add(1, std::memory_order_release);
}

// Believes entries that lie elsewhere once the list has gone on from there: two in a row may have the same flipped bit.
void Sequencer::leap(const Place& next, const Place& k, const ListedTrigger& trigger) {
  const bool goes_on = !leap_.empty() && leap_.back().first.resets == k.resets && follows(leap_.back().first, k, 1);
  if (!goes_on) leap_.clear();
  leap_.emplace_back(k, trigger);
  if (leap_.size() < kLeap) return;
  const Place first = leap_.front().first;
  if (first.resets == next.resets)
    skipped_.fetch_add(static_cast<std::uint64_t>(first.index - next.index), std::memory_order_relaxed);
  open_listed(first, first);
  for (const auto& [place, entry] : leap_) append(place, entry);
  leap_.clear();
}

// The next segment begins above all numbers that links have brought of this one.
void Sequencer::open_listed(const Place& lowest, const Place& brought) {
  segments_.open(lowest, brought, std::max(book_.end(), foremost()) + gap(), book_.end());
  version_.fetch_add(1, std::memory_order_release);
}

// Appends an entry of the newest segment. The entries before it that the list has lost are events, too.
void Sequencer::append(const Place& place, const ListedTrigger& trigger) {
  const Segment& segment = segments_.newest();
  const Sequence number = segment.base + static_cast<Sequence>(place.index);
  for (Sequence each = std::max(book_.end(), segment.first); each <= number; ++each) {
    book_.append(each, {.l1id = segment.l1id(each),
                        .bcid = trigger.bcid,
                        .type = trigger.type,
                        .state = each < number ? TriggerBook::kSkipped : TriggerBook::kListed,
                        .rounds = segment.rounds_at(each)});
  }
}

}  // namespace rodeo::readout
