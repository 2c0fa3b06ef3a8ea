#include "readout/sequence/sequencer.h"

#include <algorithm>
#include <functional>

namespace rodeo::readout {
namespace {

// Numbers start well above zero, so that "before the first event" is still a number.
constexpr Sequence kOrigin = Sequence{1} << 32;
constexpr std::uint64_t kResetsOrigin = 256;  // a reset counter of 8 bits may be found one round below
constexpr std::uint64_t kHistory = 64;
constexpr std::size_t kSegments = 64;
constexpr std::size_t kListedSegments = 4096;

// The place of an extended L1 id: of its resets the nearest round, of its 24 bits the next, unless it lies a little behind.
Place extended(const Place& from, std::uint32_t id) {
  const auto resets = static_cast<std::int8_t>(static_cast<std::uint8_t>((id >> 24) - from.resets));
  const std::int64_t low = id & 0xffffffU;
  if (resets != 0) return {from.resets + static_cast<std::uint64_t>(std::int64_t{resets}), low};
  constexpr std::int64_t kPeriod = 1 << 24;  // without a reset the L1 id goes on from 0 after its last
  constexpr std::int64_t kBehind = 1 << 20;
  const std::int64_t ahead = (low - from.index) & (kPeriod - 1);
  return {from.resets, from.index + (ahead < kPeriod - kBehind ? ahead : ahead - kPeriod)};
}

}  // namespace

Sequencer::Sequencer(const Settings& settings)
    : settings_(settings), segments_(settings.listed ? kListedSegments : kSegments), book_(settings.list_entries) {}

std::size_t Sequencer::add(LinkSequence& link, std::uint16_t stride, std::size_t reader) {
  link.stride = stride;
  State& state = states_.emplace_back();
  state.reader = reader;
  if (reader >= readers_.size()) readers_.resize(reader + 1);
  reached_.reserve(states_.size());
  state.link = &link;
  state.ring = std::make_unique_for_overwrite<Waiting[]>(settings_.aside);
  return states_.size() - 1;
}

// ---- what comes and goes

void Sequencer::offer(std::size_t link, std::uint32_t id, std::uint16_t bcid, std::uint64_t now, Sequence oldest,
                      std::vector<Decision>& decisions) {
  State& state = states_[link];
  readers_[state.reader].now = std::max(clock(state), now);
  // The links' silence counts from here where all have been silent: they may return together.
  if (!started_ || std::none_of(states_.begin(), states_.end(), [&](const State& of) { return live(of); })) {
    for (Reader& reader : readers_) reader.started = reader.now;
  }
  started_ = true;
  state.link->seen.store(now, std::memory_order_relaxed);
  if (state.count == settings_.aside) {
    // No room: the oldest cannot wait any longer.
    if (state.placed == 0)
      end(state, settings_.listed ? Verdict::not_listed : Verdict::out_of_sequence);
    else if (at(state, 0).fate == Fate::aside)
      at(state, 0).fate = Fate::decided, at(state, 0).decision = {};
    emit(state, decisions);
  }
  Waiting& waiting = at(state, state.count++);
  waiting.since = now;
  waiting.listed = book_.end();
  waiting.id = id;
  waiting.bcid = bcid;
  waiting.fate = Fate::undecided;
  look(state, now, oldest, false, decisions);
}

void Sequencer::settle(std::size_t link, std::uint64_t now, Sequence oldest, std::vector<Decision>& decisions) {
  State& state = states_[link];
  const bool patient = state.placed == state.count || now - at(state, state.placed).since < settings_.timeout_ns / 2;
  look(state, now, oldest, !patient, decisions);
}

void Sequencer::finish(std::size_t link, std::uint64_t now, Sequence oldest, std::vector<Decision>& decisions) {
  State& state = states_[link];
  readers_[state.reader].over = true;
  over_ = std::all_of(readers_.begin(), readers_.end(), [](const Reader& reader) { return reader.over; });
  look(state, now, oldest, true, decisions);
}

void Sequencer::give_up(std::size_t link, std::vector<Decision>& decisions) {
  State& state = states_[link];
  while (state.placed < state.count) end(state, Verdict::out_of_sequence);
  refute(state);
  emit(state, decisions);
  refresh(state);
}

void Sequencer::remove(std::size_t link, std::vector<Decision>& decisions) {
  give_up(link, decisions);
  LinkSequence& sequence = *states_[link].link;
  sequence.removed.store(true, std::memory_order_relaxed);
  sequence.end = 0;
}

void Sequencer::take_back(std::size_t link, Sequence from) {
  State& state = states_[link];
  state.link->removed.store(false, std::memory_order_relaxed);
  state.link->here.store(false, std::memory_order_relaxed);
  state.link->next.store(from, std::memory_order_relaxed);
  state.link->history = 0;
  state.link->end = 0;
}

// Judges what waits, oldest first, and hands out what is decided.
void Sequencer::look(State& state, std::uint64_t now, Sequence oldest, bool final, Decisions& decisions) {
  readers_[state.reader].now = std::max(clock(state), now);
  oldest_ = std::max(oldest, run_first_);
  if (state.away) {
    follow();
    settle_aside(state);
  }
  while (state.placed < state.count) {
    const Waiting x = at(state, state.placed);
    const bool last = state.placed + 1 == state.count;
    const Waiting y = last ? Waiting{} : at(state, state.placed + 1);
    if (judge(state, x, last ? nullptr : &y, final && last) == Step::wait) break;
  }
  emit(state, decisions);
  refresh(state);
}

void Sequencer::emit(State& state, Decisions& decisions) {
  while (state.placed != 0 && at(state, 0).fate == Fate::decided) {
    decisions.push_back(at(state, 0).decision);
    state.first = (state.first + 1) % settings_.aside;
    --state.count;
    --state.placed;
  }
}

// Where the fast path may go on from here.
void Sequencer::refresh(State& state) const {
  LinkSequence& link = *state.link;
  const bool free = state.count == 0 && link.here.load(std::memory_order_relaxed) &&
                    !link.removed.load(std::memory_order_relaxed) && !state.unsure &&
                    !(settings_.listed && events_ != nullptr);
  link.end = free ? segments_.of(link.position()).end : 0;
  if (free && segments_.of(link.position()).base != link.base) link.end = 0;  // its segment is over
}

// ---- the cases

Sequencer::Step Sequencer::judge(State& state, const Waiting& x, const Waiting* y, bool final) {
  if (settings_.listed) return judge_listed(state, x, y, final);
  if (state.away) return judge_away(state, x, y, final);
  if (state.link->here.load(std::memory_order_relaxed)) return judge_here(state, x, y, final);
  return judge_new(state, x, y, final);
}

Sequencer::Step Sequencer::judge_here(State& state, const Waiting& x, const Waiting* y, bool final) {
  const LinkSequence& link = *state.link;
  const std::uint32_t stride = spread(link);
  Place from = place_of(link);
  if (x.id == link.expected && segments_.number(from)) {
    if (in_window(link.position())) return take(state, link.position());  // 1
    return wait_for_room(state);                                          // -
  }
  if (y == nullptr && !final) return Step::wait;
  // The events that it expected are closed: it was silent, and comes to those that are open.
  if (link.position() < oldest_) from = segments_.of(oldest_).place(oldest_);
  const Place k = resolve_restart(from, x, y, stride);
  const std::optional<Sequence> number = segments_.number(k);
  if (k < from && number && delivered(state, *number)) return end(state, Verdict::duplicate);  // 2
  if (y != nullptr && y->id == x.id) return end(state, Verdict::duplicate);                    // 3
  const Place after = y == nullptr ? k : resolve(k, y->id, stride);
  const bool goes_on_after = y != nullptr && follows(k, after, stride);
  bool goes_on_without = false;
  if (y != nullptr) {
    const Place on = resolve(from, y->id, stride);
    const bool between = k >= from && k < on && (k.resets == on.resets || near(from, k, stride));
    goes_on_without = near(from, on, stride) && !between;
  }
  if (k < from) {  // 4
    if (events_ != nullptr && (goes_on_after || y == nullptr) && number && *number >= oldest_ && !events_->came(*number))
      return take(state, *number);
    const bool left_out = events_ == nullptr && number && *number + kHistory >= link.position();
    const bool closed = number && *number < oldest_ && (goes_on_after || *number + settings_.window >= oldest_);
    return end(state, left_out || closed ? Verdict::late : Verdict::out_of_sequence);
  }
  if (const auto found = reachable(state, k)) {
    if (goes_on_after) return take(state, *found);                     // 5
    if (goes_on_without) return end(state, Verdict::out_of_sequence);  // 6
    if (y == nullptr) return take(state, *found);                      // 8
    // 7, unless y lies before x
    return after < k && after >= from && reachable(state, after) ? end(state, Verdict::out_of_sequence)
                                                                 : take(state, *found);
  }
  const bool rises = y != nullptr && after > k && after.resets == k.resets &&
                     after.index - k.index < static_cast<std::int64_t>(settings_.window);
  const bool last_of_run = y == nullptr && k.resets != from.resets && near(from, k, stride);
  if (!goes_on_without && (rises || last_of_run || (y != nullptr && confirms(k, after, stride))))
    return go_away(state, k);  // 9
  // Links that have not been read so far may make it reachable.
  if (!goes_on_without && number && !final && untold(state, place_of(link), 0, readers_.size()))
    return wait_to_be_told(state);
  return end(state, Verdict::out_of_sequence);  // 6, 10
}

// Nothing is known of the link yet, or it was taken back.
Sequencer::Step Sequencer::judge_new(State& state, const Waiting& x, const Waiting* y, bool final) {
  if (y == nullptr && !final) return Step::wait;
  const std::uint32_t stride = spread(*state.link);
  if (y != nullptr && y->id == x.id) return end(state, Verdict::duplicate);
  const bool known = begun();
  const Place from = known ? segments_.of(oldest_).place(oldest_) : Place{kResetsOrigin, 0};
  const Place k =
      known ? nearest(from, x.id)
            : Place{kResetsOrigin + (settings_.format.has_ecr() ? x.id >> 24 : 0), x.id & settings_.format.low_mask()};
  const Place after = y == nullptr ? k : resolve(k, y->id, stride);
  const bool goes_on =
      y == nullptr || confirms(k, after, stride) ||
      (after > k && after.resets == k.resets && after.index - k.index < static_cast<std::int64_t>(settings_.window));
  if (!goes_on) return end(state, Verdict::out_of_sequence);
  if (known) {
    if (const auto found = reachable(state, k)) return take(state, *found);
    if (y == nullptr) return end(state, Verdict::out_of_sequence);
  }
  return go_away(state, k);
}

Sequencer::Step Sequencer::judge_away(State& state, const Waiting& x, const Waiting* y, bool final) {
  const std::uint32_t stride = spread(*state.link);
  const std::int64_t reach = static_cast<std::int64_t>(settings_.reach);
  if (x.id == settings_.format.of(state.going.resets, static_cast<std::uint64_t>(state.going.index)))
    return keep_aside(state, state.going);  // 11
  if (y == nullptr && !final) return Step::wait;
  const Place on = resolve_restart(state.going, x, y, stride);
  const Place next{state.going.resets, state.going.index - state.link->stride + 1};  // turns may change
  const bool goes_on = near(next, on, stride) || (on.resets == next.resets && on >= next && on.index - next.index <= reach);
  if (begun() && (y != nullptr || !goes_on)) {
    Place base = segments_.of(oldest_).place(oldest_);
    if (state.left_known && state.left > base) base = state.left;
    const Place back = resolve(base, x.id, stride);
    const auto number = segments_.number(back);
    if (number && (back != on || !goes_on) && back >= base &&
        *number <= std::max(front(&state), segments_.number(base).value_or(0)) + settings_.reach && in_window(*number) &&
        (y == nullptr || follows(back, resolve(back, y->id, stride), stride))) {
      refute(state);
      return take(state, *number);  // 12
    }
  }
  if (y != nullptr && y->id == x.id) return end(state, Verdict::duplicate);
  if (on < next && on >= first_aside(state)) return end(state, Verdict::duplicate);
  if (y != nullptr) {
    const Place after = resolve(on, y->id, stride);
    const Place without = resolve(next, y->id, stride);
    const bool flipped = near(next, on, stride) && !(near(next, without, stride) && without <= on);  // y, not x
    const bool sparse = goes_on && after > on && after.resets == on.resets && after.index - on.index <= reach;
    if (!flipped && !sparse && !(goes_on ? follows(on, after, stride) : confirms(on, after, stride)))
      return end(state, Verdict::out_of_sequence);  // 13
  }
  if (goes_on) return keep_aside(state, on);  // 11
  // A few chunks elsewhere do not make it leave what it has brought: it may come back.
  if (y == nullptr || comes_back(state, next, stride)) return end(state, Verdict::out_of_sequence);  // 13
  const bool patient = !readers_[state.reader].over && clock(state) - x.since < settings_.timeout_ns / 2;
  if (patient && (!begun() || state.count - state.placed <= settings_.step)) return Step::wait;
  refute(state);  // 14
  const Place place =
      state.left_known ? resolve_restart(state.left, x, y, stride)
      : begun()        ? nearest(segments_.of(oldest_).place(oldest_), x.id)
                : Place{kResetsOrigin + (settings_.format.has_ecr() ? x.id >> 24 : 0), x.id & settings_.format.low_mask()};
  return go_away(state, place);
}

// One of its chunks that are not decided on goes on from here.
bool Sequencer::comes_back(const State& state, const Place& next, std::uint32_t stride) const {
  for (std::size_t i = state.placed + 1; i < state.count; ++i) {
    if (near(next, resolve(next, at(state, i).id, stride), 2 * stride)) return true;
  }
  return false;
}

Sequencer::Step Sequencer::judge_listed(State& state, const Waiting& x, const Waiting* y, bool final) {
  LinkSequence& link = *state.link;
  const bool passed = list_ended_ || final ||
                      (begun() && book_.end() - std::max(x.listed, run_first_) > 2 * settings_.reach) ||
                      clock(state) - x.since > settings_.timeout_ns;
  if (!begun()) return passed ? end(state, Verdict::not_listed) : Step::wait;
  const bool fresh = !link.here.load(std::memory_order_relaxed);
  if (!fresh && !segments_.number(place_of(link))) cross(link);
  const Sequence e = link.position();
  const auto no_room = [&](Sequence number) { return !in_window(number) && number > believed_ + settings_.reach; };
  const auto too_early = [&] {
    return final || clock(state) - x.since > settings_.timeout_ns ? end(state, Verdict::out_of_sequence) : Step::wait;
  };
  if (!fresh && x.id == link.expected && segments_.number(place_of(link))) {  // 16
    if (events_ != nullptr && e >= book_.end() && !passed) return Step::wait;
    if (no_room(e)) return too_early();
    if (e == segments_.of(e).first) state.unsure = false;
    return take(state, e, state.unsure);
  }
  const std::uint64_t steps = std::uint64_t{settings_.step} * link.stride;
  const Sequence lowest =
      events_ != nullptr ? oldest_ : std::max({e, run_first_, oldest_});  // what is closed came without it
  const Sequence limit = std::max({front(&state), lowest, e, believed_}) + settings_.reach + steps;
  const auto k = find_listed(lowest, book_.end(), x.id, &x.bcid);
  const bool exact = k && settings_.has_bcid && book_.at(*k).state == TriggerBook::kListed;
  // It does not come alone: what waits after it is held against what waits of the others.
  std::uint64_t waiting = 0;
  for (const State& other : states_) waiting = &other == &state ? waiting : std::max(waiting, other.count * link.stride);
  const std::uint64_t after = (state.count - state.placed - 1) * link.stride;
  const bool far = k && (*k > limit || (*k > e + steps && *k + after > limit + waiting));
  if (exact && !far && !no_room(*k)) {
    state.unsure = false;
    return take(state, *k);  // 17
  }
  if (y == nullptr && !passed) return Step::wait;
  const auto find_on = [&](Sequence from, Sequence to) {
    return y == nullptr ? std::nullopt : find_listed(from, std::min(to, book_.end()), y->id, &y->bcid);
  };
  const auto without = find_on(e, e + steps + 1);
  if (!k) {
    if (!passed && !without) return Step::wait;                                                // 20
    return end(state, was_delivered(state, x.id) ? Verdict::duplicate : Verdict::not_listed);  // 18, 19
  }
  if (y != nullptr && y->id == x.id) {
    if (*k + link.stride >= book_.end() && !passed) return Step::wait;
    if (!find_on(*k + 1, *k + link.stride + 1)) return end(state, Verdict::duplicate);
  }
  const bool goes_on = y == nullptr || find_on(*k + 1, *k + steps + 1);
  if (without && (far || (!goes_on && (*without < *k || *k < e))))
    return end(state, was_delivered(state, x.id) ? Verdict::duplicate : Verdict::out_of_sequence);
  // Where ids repeat, the list may soon come to another event of this id.
  const std::uint64_t soon = 2 * settings_.reach;
  const auto listed_index = static_cast<std::uint64_t>(segments_.newest().place(book_.end()).index);
  const bool repeats =
      !settings_.format.has_ecr() && (x.id <= soon || ((x.id - listed_index) & settings_.format.low_mask()) <= soon);
  const bool skips = *k > (fresh ? run_first_ + settings_.reach : e) + steps;
  if (skips && !exact && repeats && !passed) return Step::wait;
  if (!goes_on && !find_on(*k + 1, book_.end()))
    return passed || *k + steps + 1 < book_.end() ? end(state, Verdict::out_of_sequence) : Step::wait;
  if (far && !(exact && in_window(*k)) && !followed_in_list(state, *k)) return too_early();  // 21
  if (no_room(*k)) return too_early();
  // Where an epoch later has the id, too, the link may have been silent for longer: flagged until it crosses a reset where the list has it.
  state.unsure = state.unsure || (skips && find_listed(*k + 1, book_.end(), x.id, &x.bcid));
  return take(state, *k, state.unsure);
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

// ---- how a chunk ends, or waits

// Ends the first chunk that is not decided on.
Sequencer::Step Sequencer::end(State& state, Verdict verdict) {
  state.far = 0;
  set(state.blocked, false);
  Waiting& waiting = at(state, state.placed++);
  waiting.fate = Fate::decided;
  waiting.decision = {.verdict = verdict};
  return Step::done;
}

// It belongs to this event, which may be over for others' reasons; either way the link is behind it from now on.
Sequencer::Step Sequencer::take(State& state, Sequence number, bool doubtful) {
  state.far = 0;
  decide_taken(state, state.placed++, number, doubtful);
  return Step::done;
}

void Sequencer::decide_taken(State& state, std::size_t i, Sequence number, bool doubtful) {
  LinkSequence& link = *state.link;
  state.alone = false;
  set(state.blocked, false);
  Waiting& waiting = at(state, i);
  const Segment& segment = segments_.of(number);
  const Sequence before = link.position();
  waiting.fate = Fate::decided;
  if (events_ == nullptr && number < before) {
    waiting.decision = {};  // a link goes forward only: no event gets two of its chunks
    return;
  }
  waiting.decision = {.verdict = Verdict::take,
                      .doubtful = doubtful || restarts_untold(link, number, waiting.id),
                      .sequence = number,
                      .from = before,
                      .resets = static_cast<std::uint32_t>(segment.resets),
                      .base = segment.base};
  if (number < oldest_) {
    waiting.decision.verdict = Verdict::late;
  } else if (events_ != nullptr && events_->came(number)) {
    waiting.decision.verdict = Verdict::duplicate;
  }
  const Sequence last = before - link.stride;
  if (events_ != nullptr && number > last && number - last <= 4 * states_.size()) {
    // The links of a group may be dealt the events anew: two equal steps are believed.
    if (number - last == state.last_step) link.stride = static_cast<std::uint16_t>(state.last_step);
    state.last_step = number - last;
  }
  const std::uint64_t skipped = number - before;
  link.history = (skipped >= kHistory ? 0 : link.history << skipped) << 1 | 1;
  link.next.store(number + link.stride, std::memory_order_relaxed);
  link.base = segment.base;
  link.resets = static_cast<std::uint32_t>(segment.resets);
  link.expected = settings_.format.of(segment.resets, number + link.stride - segment.base);
  link.here.store(true, std::memory_order_relaxed);
}

// The id of a link that was elsewhere is near zero, and nobody can tell a reset from a jump.
bool Sequencer::restarts_untold(const LinkSequence& link, Sequence number, std::uint32_t id) const {
  if (settings_.listed || settings_.format.shows_restarts() || !link.here.load(std::memory_order_relaxed)) return false;
  return id <= settings_.step && number > link.position() + settings_.step;
}

Sequencer::Step Sequencer::go_away(State& state, const Place& place) {
  if (place.index < 0 && settings_.format.has_ecr()) return end(state, Verdict::out_of_sequence);  // resets begin at 0
  leave(state);
  return keep_aside(state, place);
}

void Sequencer::leave(State& state) {
  LinkSequence& link = *state.link;
  state.left_known = link.here.load(std::memory_order_relaxed);
  if (state.left_known) state.left = place_of(link);
  link.here.store(false, std::memory_order_relaxed);
  set(state.away, true);
  state.away_since = clock(state);
  note_departure(state);
  state.others_at = foremost();
  state.chunks_there = 0;
}

Sequencer::Step Sequencer::keep_aside(State& state, const Place& place) {
  Waiting& waiting = at(state, state.placed++);
  waiting.fate = Fate::aside;
  waiting.place = place;
  state.going = {place.resets, place.index + state.link->stride};
  ++state.chunks_there;
  follow();
  settle_aside(state);
  return Step::done;
}

// What lies aside is out of sequence; the link is where it left.
void Sequencer::refute(State& state) {
  for (std::size_t i = 0; i < state.placed; ++i) {
    if (at(state, i).fate != Fate::aside) continue;
    at(state, i).fate = Fate::decided;
    at(state, i).decision = {};
  }
  if (!state.away) return;
  set(state.away, false);
  state.link->here.store(state.left_known, std::memory_order_relaxed);
}

// Takes what lies aside as far as it can be reached by now.
void Sequencer::settle_aside(State& state) {
  if (!state.away || !begun()) return;
  const bool patient = state.placed == 0 || clock(state) - at(state, 0).since < settings_.timeout_ns / 2;
  if (state.chunks_there < 2 && patient && !over_) return;
  // The last whose segment is known, and for which there is room: one that is far ahead does not come in step by step.
  const auto has_place = [&](const Waiting& waiting) {
    const auto number = waiting.fate == Fate::aside ? segments_.number(waiting.place) : std::nullopt;
    return number && in_window(*number);
  };
  std::size_t known = state.placed;
  while (known != 0 && !has_place(at(state, known - 1))) --known;
  if (known == 0 || !reachable(state, at(state, known - 1).place)) return;
  // It says that the segment is longer than the others say.
  if (known < state.placed && at(state, known).place.resets == at(state, known - 1).place.resets &&
      !segments_.number(at(state, known).place))
    return;
  for (std::size_t i = 0; i < state.placed; ++i) {
    const Waiting& waiting = at(state, i);
    if (waiting.fate != Fate::aside) continue;
    const auto number = segments_.number(waiting.place);
    if (!number && !state.link->here.load(std::memory_order_relaxed)) {  // where nobody has followed, before it came here
      at(state, i).fate = Fate::decided;
      at(state, i).decision = {};
      continue;
    }
    if (!number || !in_window(*number)) {
      if (state.link->here.load(std::memory_order_relaxed)) leave(state);
      return;
    }
    decide_taken(state, i, *number, false);
  }
  if (state.link->here.load(std::memory_order_relaxed)) set(state.away, false);
}

// ---- following

Place Sequencer::first_aside(const State& state) const {
  for (std::size_t i = 0; i < state.placed; ++i) {
    if (at(state, i).fate == Fate::aside) return at(state, i).place;
  }
  return state.going;
}

// They have gone to about the same place: what they have brought there overlaps, or nearly.
bool Sequencer::together(const State& a, const State& b) const {
  const auto room = static_cast<std::int64_t>(settings_.reach + std::uint64_t{settings_.step} * a.link->stride);
  const auto beyond = [&](const Place& place) { return Place{place.resets, place.index + room}; };
  return first_aside(a) <= beyond(b.going) && first_aside(b) <= beyond(a.going);
}

// When it left, most others went on. They say what the link's counter does not.
bool Sequencer::contradicted(const State& state) const {
  if (!state.away || !state.left_known) return false;
  const Sequence end = segments_.of(state.others_at).end;
  std::uint32_t others = 0;
  std::uint32_t beyond = 0;
  for (const State& other : states_) {
    if (&other == &state || other.link->removed.load(std::memory_order_relaxed) || !live(other)) continue;
    ++others;
    const Sequence position = other.link->position();
    if (position < end && position > state.others_at + std::uint64_t{settings_.step} * other.link->stride) ++beyond;
  }
  return 2 * beyond > others;
}

// Opens what enough links have gone to; true if it has.
bool Sequencer::follow() {
  for (State& state : states_) state.alone = state.alone || contradicted(state);
  for (const State& state : states_) {
    if (!state.away || state.link->removed.load(std::memory_order_relaxed) || state.alone || !may_follow(state)) continue;
    // From where the first of them began, unless it has come there from a place of its own.
    Place latest = first_aside(state);
    for (const State& other : states_) {
      if (other.away && together(state, other) && !other.alone) latest = std::max(latest, first_aside(other));
    }
    // What only few of them have brought before that - a reset, a jump - is not believed.
    Place lowest = latest;
    Place before = latest;
    std::size_t group = 0;
    std::size_t longer = 0;
    for (const State& other : states_) {
      if (!other.away || !together(state, other) || other.alone) continue;
      ++group;
      const Place first = first_aside(other);
      if (first.resets == latest.resets && latest.index - first.index > static_cast<std::int64_t>(settings_.window))
        continue;
      if (first.resets == latest.resets) {
        lowest = std::min(lowest, first);
      } else {
        ++longer;
        before = std::min(before, first);
      }
    }
    if (2 * longer > group) lowest = before;
    if (!open(state, lowest)) continue;
    version_.fetch_add(1, std::memory_order_release);
    return true;
  }
  return false;
}

bool Sequencer::may_follow(const State& state) const {
  if (begun()) {
    const auto number = segments_.number(first_aside(state));
    if (number && *number <= std::max(front(nullptr), believed_) + settings_.reach) return false;  // within reach already
  }
  std::uint64_t chunks = 0;
  std::uint64_t lasted = 0;
  std::uint32_t there = 0;
  std::uint64_t since = state.away_since;
  Place left{};
  for (const State& other : states_) {
    if (!other.away || other.link->removed.load(std::memory_order_relaxed) || !together(state, other) || other.alone)
      continue;
    ++there;
    chunks += other.chunks_there;
    since = std::min(since, other.away_since);
    lasted = std::max(lasted, other.chunks_there * other.link->stride);
    if (other.left_known) left = std::max(left, other.left);
  }
  if (chunks < 2 && !over_) return false;
  std::uint32_t alive = 0;
  std::uint32_t against = 0;
  for (const State& other : states_) {
    if (other.link->removed.load(std::memory_order_relaxed) || !live(other)) continue;
    ++alive;
    const Place goes_on{left.resets, left.index + std::int64_t{settings_.step} * other.link->stride};
    if (other.link->here.load(std::memory_order_relaxed) && place_of(*other.link) > goes_on) ++against;
  }
  if (2 * there > alive) return true;
  if (untold(state, left, 0, readers_.size())) return false;
  const bool long_enough = lasted > 2 * settings_.reach + std::uint64_t{settings_.step} * state.link->stride;
  return there > against && (long_enough || clock(state) - since > settings_.timeout_ns || over_);
}

// Another reader has live links, none of which has gone beyond where this one left, or elsewhere: it may not have read so far.
bool Sequencer::untold(const State& state, const Place& left, std::size_t first, std::size_t end) const {
  for (std::size_t reader = first; reader < end; ++reader) {
    if (told(state, reader)) continue;
    bool lives = false;
    bool has_read_on = false;
    for (const State& other : states_) {
      if (other.reader != reader || other.link->removed.load(std::memory_order_relaxed) || !live(other)) continue;
      lives = true;
      const Place goes_on{left.resets, left.index + std::int64_t{settings_.step} * other.link->stride};
      has_read_on =
          has_read_on || other.away || (other.link->here.load(std::memory_order_relaxed) && place_of(*other.link) > goes_on);
    }
    if (lives && !has_read_on) return true;
  }
  return false;
}

// What the links of this reader have not brought by now, they will not bring for the time being.
bool Sequencer::told(const State& state, std::size_t reader) const {
  const Reader& of = readers_[reader];
  return reader == state.reader || of.over || of.waits || of.looked >= state.departure;
}

bool Sequencer::reaches_far(std::size_t link) const {
  const State& state = states_[link];
  if (state.blocked) return state.count > settings_.step;
  return state.away && state.going.index - first_aside(state).index > static_cast<std::int64_t>(settings_.reach);
}

bool Sequencer::may_be_told(std::size_t link, std::size_t first, std::size_t end) const {
  const State& state = states_[link];
  if (state.blocked) return untold(state, place_of(*state.link), first, end);
  if (!state.away || state.alone || contradicted(state)) return false;
  // Where it has gone the others are on their way, too, or nobody knows yet.
  const bool known = begun() && segments_.number(first_aside(state));
  Place place = state.left_known ? state.left : Place{};
  if (known) place = {state.going.resets, state.going.index - static_cast<std::int64_t>(settings_.reach + settings_.step)};
  return untold(state, place, first, end);
}

// The window has no room for what the link should bring. It waits; and when it has waited long, those of the others who have not moved since then
// are not waited for any more.
Sequencer::Step Sequencer::wait_for_room(State& state) {
  wait_to_be_told(state);
  if (state.count > 2 * settings_.reach + settings_.step) {
    for (State& other : states_) {
      if (other.link->position() == other.then && told(state, other.reader)) other.stalled = other.then;
    }
    if (in_window(state.link->position())) return take(state, state.link->position());
  }
  return Step::wait;
}

Sequencer::Step Sequencer::wait_to_be_told(State& state) {
  if (!state.blocked) {
    set(state.blocked, true);
    note_departure(state);
  }
  return Step::wait;
}

void Sequencer::note_departure(State& state) {
  state.departure = ++departures_;
  for (State& other : states_) other.then = other.link->position();
}

// Of away and blocked links.
void Sequencer::set(bool& flag, bool to) {
  if (flag != to) held_up_.fetch_add(to ? 1U : ~0U, std::memory_order_relaxed);
  flag = to;
}

bool Sequencer::open(const State& state, const Place& lowest) {
  const auto reach = static_cast<std::int64_t>(settings_.reach);
  if (!begun()) {
    begin({lowest.resets, lowest.index - std::min(reach, lowest.index)});
  } else if (const auto number = segments_.number(lowest); number && *number <= foremost() + settings_.window) {
    // Near enough to build what was skipped as empty events.
  } else {
    // Too far, or another segment. A reset begins at 0; where a jump or a restart in the midst begins, nobody knows.
    const bool from_zero = !number && (settings_.format.has_ecr() || lowest.index <= reach);
    const std::int64_t room = from_zero && lowest.index < static_cast<std::int64_t>(settings_.window)
                                  ? lowest.index
                                  : std::min(reach, lowest.index);
    const Place begins{lowest.resets, lowest.index - room};
    if (number) {
      Sequence came = run_first_;  // beyond the last that came, numbers of the old segment are no events
      for (const State& of : states_) came = std::max(came, of.link->position() - of.link->stride + 1);
      skipped_.fetch_add(*number - static_cast<Sequence>(room) - came, std::memory_order_relaxed);
    } else if (from_zero) {
      skipped_.fetch_add(static_cast<std::uint64_t>(begins.index), std::memory_order_relaxed);
    }
    // Turns (turns.h) do not outlive so wide a gap.
    segments_.open(begins, foremost() + settings_.reach + 2 * std::uint64_t{settings_.step} * states_[0].link->stride);
  }
  // So far more than half of them have come: the last number of each that is known.
  reached_.clear();
  for (const State& other : states_) {
    if (!other.away || !together(state, other) || other.alone) continue;
    Sequence last = segments_.newest().first;
    for (std::size_t i = other.placed; i-- > 0;) {
      if (at(other, i).fate != Fate::aside) continue;
      const auto number = segments_.number(at(other, i).place);
      if (!number) continue;
      last = std::max(last, *number);
      break;
    }
    reached_.push_back(last);
  }
  std::ranges::nth_element(reached_, reached_.begin() + reached_.size() / 2, std::greater<>());
  const Sequence believed = reached_[reached_.size() / 2];
  if (believed <= believed_) return false;
  believed_ = believed;
  return true;
}

void Sequencer::begin(const Place& lowest) {
  segments_.open(lowest, kOrigin);
  run_first_ = kOrigin;
  oldest_ = kOrigin;
  for (State& state : states_) {
    // What is taken back while nothing has begun takes part from the beginning.
    state.link->next.store(run_first_, std::memory_order_relaxed);
  }
  begun_.store(true, std::memory_order_release);
}

// ---- numbers

// The place that an id means to a link which is at `from`.
Place Sequencer::resolve(const Place& from, std::uint32_t id, std::uint32_t stride) const {
  const IdFormat& format = settings_.format;
  if (format.has_ecr()) {
    return extended(from, id);
  }
  const std::uint64_t period = format.period();
  const std::uint64_t ahead = (id - static_cast<std::uint64_t>(from.index)) & format.low_mask();
  const std::uint64_t back = std::min<std::uint64_t>(kHistory * stride, period / 4);
  if (ahead >= period - back) return {from.resets, from.index + static_cast<std::int64_t>(ahead - period)};
  if (format.shows_restarts()) {
    const bool low = id <= settings_.step * stride && ahead > settings_.reach;
    if (low || ahead > period / 2) return {from.resets + 1, id};
  }
  return {from.resets, from.index + static_cast<std::int64_t>(ahead)};
}

// The same where nothing is known of the link: it may be behind by a window.
Place Sequencer::nearest(const Place& from, std::uint32_t id) const {
  const IdFormat& format = settings_.format;
  if (format.has_ecr()) return resolve(from, id, 1);
  const std::uint64_t period = format.period();
  const std::uint64_t ahead = (id - static_cast<std::uint64_t>(from.index)) & format.low_mask();
  if (ahead >= period - std::min<std::uint64_t>(settings_.window, period / 4))
    return {from.resets, from.index + static_cast<std::int64_t>(ahead - period)};
  if (format.shows_restarts() && ahead > period / 2) return {from.resets + 1, id};
  return {from.resets, from.index + static_cast<std::int64_t>(ahead)};
}

// Events from one chunk of a link to the next, where links take turns or are dealt events as they come.
std::uint32_t Sequencer::spread(const LinkSequence& link) const {
  return events_ == nullptr ? 1 : std::max<std::uint32_t>(link.stride, static_cast<std::uint32_t>(states_.size()));
}

bool Sequencer::near(const Place& from, const Place& to, std::uint32_t stride) const {
  const std::int64_t steps = std::int64_t{settings_.step} * stride;
  if (to.resets == from.resets) return to.index >= from.index && to.index - from.index <= steps;
  return to.resets == from.resets + 1 && to.index <= steps;
}

bool Sequencer::follows(const Place& from, const Place& to, std::uint32_t stride) const {
  return near({from.resets, from.index + 1}, to, stride);
}

// The same where x lies elsewhere: a counter that starts again, where resets do not show, says nothing of what was before.
bool Sequencer::confirms(const Place& from, const Place& to, std::uint32_t stride) const {
  return follows(from, to, stride) && (to.resets == from.resets || settings_.format.has_ecr());
}

// The same, but an id near zero that the next goes on after is a counter that has started again, where resets show in no other way.
Place Sequencer::resolve_restart(const Place& from, const Waiting& x, const Waiting* y, std::uint32_t stride) const {
  const Place place = resolve(from, x.id, stride);
  const std::int64_t steps = std::int64_t{settings_.step} * stride;
  if (y == nullptr || place >= from || from.index - place.index <= steps || settings_.format.has_ecr() ||
      !settings_.format.shows_restarts() || x.id > steps)
    return place;
  const std::uint32_t on = (y->id - x.id) & settings_.format.low_mask();
  return on >= 1 && on <= steps ? Place{from.resets + 1, x.id} : place;
}

bool Sequencer::delivered(const State& state, Sequence number) const {
  if (events_ != nullptr) return events_->came(number);
  const Sequence next = state.link->position();
  return number < next && next - 1 - number < kHistory && (state.link->history >> (next - 1 - number) & 1U) != 0;
}

bool Sequencer::in_window(Sequence number) const {
  return over_ || number < oldest_ + settings_.window || may_close(number - settings_.window);
}

std::optional<Sequence> Sequencer::reachable(const State& state, const Place& place) const {
  const auto number = segments_.number(place);
  if (!number) return std::nullopt;
  if (*number <= believed_ + settings_.reach) return number;  // the window moves for most
  if (!in_window(*number)) return std::nullopt;
  const LinkSequence& link = *state.link;
  if (link.here.load(std::memory_order_relaxed) && near(place_of(link), place, spread(link))) return number;
  if (*number <= front(&state) + settings_.reach) return number;
  return std::nullopt;
}

// Where the foremost of the links that are here is.
Sequence Sequencer::front(const State* without) const {
  Sequence front = 0;
  for (const State& state : states_) {
    if (&state == without || state.link->removed.load(std::memory_order_relaxed) || !live(state)) continue;
    if (state.link->here.load(std::memory_order_relaxed)) front = std::max(front, state.link->position());
  }
  return front;
}

// The lowest number that no link has come to.
Sequence Sequencer::foremost() const {
  Sequence foremost = std::max({oldest_, believed_, run_first_});
  for (const State& state : states_) foremost = std::max(foremost, state.link->position() - state.link->stride + 1);
  return events_ == nullptr ? foremost : std::max(foremost, events_->head());
}

bool Sequencer::live(const State& state) const {
  const std::uint64_t seen = std::max(state.link->seen.load(std::memory_order_relaxed), readers_[state.reader].started);
  return clock(state) <= seen + settings_.timeout_ns;
}

// More links have passed this event than are still to come to it: the window may move past it.
bool Sequencer::may_close(Sequence oldest) const {
  std::uint32_t passed = 0;
  std::uint32_t behind = 0;
  for (const State& state : states_) {
    const LinkSequence& link = *state.link;
    if (link.removed.load(std::memory_order_relaxed)) continue;
    if (link.position() > oldest)
      ++passed;
    else if (!state.away && live(state) && link.position() != state.stalled)
      ++behind;
  }
  return passed > behind;
}

// ---- the trigger's list

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
  if (!has_room(oldest)) return false;
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
