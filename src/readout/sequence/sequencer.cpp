#include "readout/sequence/sequencer.h"

#include <algorithm>

namespace rodeo::readout {

Sequencer::Sequencer(const Settings& settings)
    : settings_(settings),
      segments_(settings.listed ? kListedSegments : kSegments, settings.format.ids()),
      book_(settings.list_entries) {}

std::size_t Sequencer::add(LinkSequence& link, std::uint16_t stride, std::size_t reader, std::size_t window) {
  link.stride = stride;
  State& state = states_.emplace_back();
  state.reader = reader;
  state.window = window;
  while (reader >= readers_.size()) readers_.emplace_back().pace = std::make_unique<Pace>(settings_.format.period());
  readers_[reader].window = window;
  link.pace = readers_[reader].pace.get();
  if (window >= oldest_open_.size()) {
    oldest_open_.resize(window + 1);
    bcids_.resize(window + 1);
  }
  reached_.reserve(states_.size());
  stands_.reserve(states_.size());
  state.link = &link;
  state.ring = std::make_unique_for_overwrite<Waiting[]>(settings_.aside);
  return states_.size() - 1;
}

// ---- what comes and goes

void Sequencer::offer(std::size_t link, std::uint32_t id, std::uint16_t bcid, std::uint64_t now, Sequence oldest,
                      std::vector<Decision>& decisions) {
  State& state = states_[link];
  readers_[state.reader].now = std::max(clock(state), now);
  // If all links have been silent, their silence counts from here: they may return together.
  if (!started_ || std::none_of(states_.begin(), states_.end(), [&](const State& of) { return live(of); })) {
    for (Reader& reader : readers_) reader.started = reader.now;
  }
  started_ = true;
  state.link->seen.store(now, std::memory_order_relaxed);
  find_lost(state, id);
  if (state.count == settings_.aside) make_place(state, now, oldest, decisions);
  Waiting& waiting = at(state, state.count++);
  ++readers_[state.reader].waiting;
  ++state.offered_since;
  waiting.since = now;
  waiting.listed = book_.end();
  waiting.id = id;
  waiting.bcid = bcid;
  waiting.fate = Fate::undecided;
  look(state, now, oldest, false, decisions);
}

// No more chunks may wait: the oldest is judged again, and ends if it still has to wait.
void Sequencer::make_place(State& state, std::uint64_t now, Sequence oldest, Decisions& decisions) {
  if (state.placed == 0) look(state, now, oldest, false, decisions);
  if (state.count == settings_.aside) end_oldest(state, decisions);
}

void Sequencer::end_oldest(State& state, Decisions& decisions) {
  if (state.placed == 0) {
    end(state, settings_.listed ? Verdict::not_listed : Verdict::out_of_sequence);
  } else if (at(state, 0).fate == Fate::aside) {
    at(state, 0).fate = Fate::decided;
    at(state, 0).decision = {};
  }
  emit(state, decisions);
}

void Sequencer::settle(std::size_t link, std::uint64_t now, Sequence oldest, std::vector<Decision>& decisions) {
  State& state = states_[link];
  const bool patient = state.placed == state.count || now - at(state, state.placed).since < settings_.timeout_ns / 2;
  look(state, now, oldest, !patient, decisions);
}

void Sequencer::finish(std::size_t link, std::uint64_t now, Sequence oldest, std::vector<Decision>& decisions) {
  State& state = states_[link];
  reads_no_more(state.reader);
  look(state, now, oldest, true, decisions);
}

void Sequencer::reads_no_more(std::size_t reader) {
  readers_[reader].over = true;
  over_ = std::ranges::all_of(readers_, &Reader::over);
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

void Sequencer::restore(std::size_t link, Sequence from) {
  State& state = states_[link];
  state.alone = false;
  state.link->removed.store(false, std::memory_order_relaxed);
  state.link->here.store(false, std::memory_order_relaxed);
  state.link->next.store(from, std::memory_order_relaxed);
  state.link->history = 0;
  state.link->end = 0;
}

// Judges the waiting chunks, oldest first, and hands out the decisions.
void Sequencer::look(State& state, std::uint64_t now, Sequence oldest, bool final, Decisions& decisions) {
  Reader& reader = readers_[state.reader];
  reader.now = std::max(reader.now, now);
  note_oldest(state.reader, oldest);
  oldest_ = std::max(oldest, run_first_);
  if (state.away()) {
    follow(state);
    settle_aside(state);
  }
  while (state.placed < state.count) {
    const Waiting chunk = at(state, state.placed);
    const bool last = state.placed + 1 == state.count;
    const Waiting following = last ? Waiting{} : at(state, state.placed + 1);
    if (judge(state, chunk, last ? nullptr : &following, final && last) == Step::wait) break;
  }
  emit(state, decisions);
  refresh(state);
}

void Sequencer::emit(State& state, Decisions& decisions) {
  while (state.placed != 0 && at(state, 0).fate == Fate::decided) {
    decisions.push_back(at(state, 0).decision);
    state.first = (state.first + 1) % settings_.aside;
    --state.count;
    --readers_[state.reader].waiting;
    --state.placed;
  }
}

// Sets the number up to which the fast path may go on.
void Sequencer::refresh(State& state) const {
  LinkSequence& link = *state.link;
  const bool free = state.count == 0 && link.here.load(std::memory_order_relaxed) &&
                    !link.removed.load(std::memory_order_relaxed) && !state.unsure && !state.link->doubtful &&
                    !state.suspected && !link.lost && link.position() >= state.floor &&
                    !(settings_.listed && events_ != nullptr);
  link.end = free ? segments_.of(link.position()).end : 0;
  if (free && !is_in_segment(link)) link.end = 0;
  if (free && beyond_segment(state)) link.end = 0;
}

// ---- the cases

Sequencer::Step Sequencer::judge(State& state, const Waiting& chunk, const Waiting* following, bool final) {
  if (settings_.listed) return judge_listed(state, chunk, following, final);
  if (state.away()) return judge_away(state, chunk, following, final);
  if (state.link->here.load(std::memory_order_relaxed)) return judge_here(state, chunk, following, final);
  return judge_new(state, chunk, following, final);
}

Sequencer::Step Sequencer::judge_here(State& state, const Waiting& chunk, const Waiting* following, bool final) {
  const LinkSequence& link = *state.link;
  const std::uint32_t stride = spread(link);
  Place expected = place_of(link);
  if (chunk.id == link.expected && is_in_segment(link) && !link.lapsed(oldest_, settings_.format)) {
    return finds_room(state, link.position()) ? take(state, link.position()) : Step::wait;  // 1
  }
  if (following == nullptr && !final) return Step::wait;
  // The events that the link expected are closed: it was silent, and comes to those that are open.
  if (link.position() < oldest_) expected = segments_.of(oldest_).place(oldest_);
  const Place place = resolve_restart(expected, chunk, following, stride);
  const std::optional<Sequence> number = segments_.number(place);
  if (place < expected && number && delivered(state, *number)) return end(state, Verdict::duplicate);  // 2
  if (following != nullptr && following->id == chunk.id) return end(state, Verdict::duplicate);        // 3
  const Place after = following == nullptr ? place : resolve(place, following->id, stride);
  const bool goes_on_after = following != nullptr && follows(place, after, stride);
  if (place < expected) return judge_behind(state, number, following, goes_on_after);  // 4
  bool goes_on_without = false;
  if (following != nullptr) {
    const Place on = resolve(expected, following->id, stride);
    const bool between = place < on && (place.resets == on.resets || near(expected, place, stride));
    goes_on_without = near(expected, on, stride) && !between;
  }
  if (const auto found = reachable(state, place)) {
    if (goes_on_after) return take(state, *found);                     // 5
    if (goes_on_without) return end(state, Verdict::out_of_sequence);  // 6
    if (following == nullptr) return take(state, *found);              // 8
    // 7: the link skips most events, or the next id is flipped. A link that has lately left out nothing may leap only with a
    // witness.
    const bool lies_before = after < place && after >= expected && reachable(state, after);
    const bool leaps = events_ == nullptr && (link.history & kDense) == kDense && !near(expected, place, stride);
    const bool senseless = leaps && !(after > place && reachable(state, after));
    return lies_before || senseless ? end(state, Verdict::out_of_sequence) : take(state, *found);
  }
  const bool last_of_run = following == nullptr && place.resets != expected.resets && near(expected, place, stride);
  const bool goes_away = last_of_run || rises(place, after) || (following != nullptr && confirms(place, after, stride));
  if (!goes_on_without && goes_away) return go_away(state, place);  // 9
  // Readers that have not read so far may make the place reachable.
  if (!goes_on_without && number && !final && others_may_tell(state)) return Step::wait;
  return end(state, Verdict::out_of_sequence);  // 6, 10
}

Sequencer::Step Sequencer::judge_behind(State& state, const std::optional<Sequence>& number, const Waiting* following,
                                        bool goes_on_after) {
  const bool open = number && *number >= oldest_;
  if (events_ != nullptr && (goes_on_after || following == nullptr) && open && !events_->came(*number))
    return take(state, *number);
  const bool left_out = events_ == nullptr && number && *number + kHistory >= state.link->position();
  const bool closed = number && !open && (goes_on_after || *number + settings_.window >= oldest_);
  return end(state, left_out || closed ? Verdict::late : Verdict::out_of_sequence);
}

// True if the counter has gone on within its segment, by less than the window.
bool Sequencer::rises(const Place& from, const Place& to) const {
  return to > from && to.resets == from.resets && to.index - from.index < static_cast<std::int64_t>(settings_.window);
}

// For a link of which nothing is known yet, or which was restored.
Sequencer::Step Sequencer::judge_new(State& state, const Waiting& chunk, const Waiting* following, bool final) {
  if (following == nullptr && !final) return Step::wait;
  const std::uint32_t stride = spread(*state.link);
  if (following != nullptr && following->id == chunk.id) return end(state, Verdict::duplicate);  // 22
  const auto stand = begun() ? stand_of_peers(state) : std::nullopt;
  const Sequence known = std::max(oldest_, state.lowest);
  const bool told = stand && state.link->doubtful && (stand->together || stand->proves || stand->of_others);
  // A link that lost its place went forward; without peers nothing else is known.
  const bool onward = begun() && state.link->doubtful && !stand && settings_.format.has_ecr();
  const auto found = told      ? place_by(state, *stand, chunk.id)
                     : onward  ? extended(segments_.of(known).place(known), chunk.id, 0)
                     : begun() ? nearest(segments_.of(known).place(known), chunk.id)
                               : late_place(state, chunk.id);
  if (!found) return end(state, Verdict::out_of_sequence);  // 27
  const Place place = *found;
  const Place after = following == nullptr ? place : resolve(place, following->id, stride);
  if (following != nullptr && !confirms(place, after, stride) && !rises(place, after))
    return end(state, Verdict::out_of_sequence);  // 23
  if (begun()) {
    if (const auto number = reachable(state, place)) return take(state, *number);  // 24
    if (following == nullptr) return end(state, Verdict::out_of_sequence);         // 25
  }
  return go_away(state, place);  // 26
}

Sequencer::Step Sequencer::judge_away(State& state, const Waiting& chunk, const Waiting* following, bool final) {
  const std::uint32_t stride = spread(*state.link);
  const std::int64_t reach = static_cast<std::int64_t>(settings_.reach);
  if (chunk.id == settings_.format.of(state.going.resets, static_cast<std::uint64_t>(state.going.index)))
    return keep_aside(state, state.going);  // 11
  if (following == nullptr && !final) return Step::wait;
  const Place place = resolve_restart(state.going, chunk, following, stride);
  const Place expected{state.going.resets, state.going.index - state.link->stride + 1};  // turns may change
  const bool goes_on = near(expected, place, stride) ||
                       (place.resets == expected.resets && place >= expected && place.index - expected.index <= reach);
  if (begun() && (following != nullptr || !goes_on)) {
    Place base = segments_.of(oldest_).place(oldest_);
    if (state.left && *state.left > base) base = *state.left;
    const Place back = resolve(base, chunk.id, stride);
    const auto number = segments_.number(back);
    if (number && (back != place || !goes_on) && back >= base &&
        *number <= std::max(front_beside(state), segments_.number(base).value_or(0)) + settings_.reach &&
        in_window(state, *number) && (following == nullptr || follows(back, resolve(back, following->id, stride), stride))) {
      refute(state);
      return take(state, *number);  // 12
    }
  }
  if (following != nullptr && following->id == chunk.id) return end(state, Verdict::duplicate);
  if (place < expected && place >= first_aside(state)) return end(state, Verdict::duplicate);
  if (following != nullptr) {
    const Place after = resolve(place, following->id, stride);
    const Place without = resolve(expected, following->id, stride);
    const bool follower_flipped = near(expected, place, stride) && !(near(expected, without, stride) && without <= place);
    const bool sparse = goes_on && after > place && after.resets == place.resets && after.index - place.index <= reach;
    if (!follower_flipped && !sparse && !(goes_on ? follows(place, after, stride) : confirms(place, after, stride)))
      return end(state, Verdict::out_of_sequence);  // 13
  }
  if (goes_on) return keep_aside(state, place);  // 11
  // A few chunks elsewhere do not end its stay at the new place: it may come back there.
  if (following == nullptr || comes_back(state, expected, stride)) return end(state, Verdict::out_of_sequence);  // 13
  const bool patient = !readers_[state.reader].over && clock(state) - chunk.since < settings_.timeout_ns / 2;
  if (patient && (!begun() || state.count - state.placed <= settings_.step)) return Step::wait;
  refute(state);  // 14
  const auto elsewhere = state.left ? resolve_restart(*state.left, chunk, following, stride)
                         : begun()  ? nearest(segments_.of(oldest_).place(oldest_), chunk.id)
                                    : late_place(state, chunk.id);
  return elsewhere ? go_away(state, *elsewhere) : end(state, Verdict::out_of_sequence);
}

// True if one of its undecided chunks goes on from here.
bool Sequencer::comes_back(const State& state, const Place& expected, std::uint32_t stride) const {
  for (std::size_t i = state.placed + 1; i < state.count; ++i) {
    if (near(expected, resolve(expected, at(state, i).id, stride), 2 * stride)) return true;
  }
  return false;
}

// ---- how a chunk ends, or waits

// Ends the first undecided chunk.
Sequencer::Step Sequencer::end(State& state, Verdict verdict) {
  state.far = 0;
  unblock(state);
  Waiting& waiting = at(state, state.placed++);
  waiting.fate = Fate::decided;
  waiting.decision = {.verdict = verdict};
  return Step::done;
}

// The chunk belongs to this event, which may be closed already. In both cases the link has now passed the event.
Sequencer::Step Sequencer::take(State& state, Sequence number, bool doubtful) {
  state.far = 0;
  decide_taken(state, state.placed++, number, doubtful);
  return Step::done;
}

void Sequencer::decide_taken(State& state, std::size_t i, Sequence number, bool doubtful) {
  LinkSequence& link = *state.link;
  state.alone = false;
  unblock(state);
  Waiting& waiting = at(state, i);
  const Sequence taken_for = number;
  number = prove(state, number, waiting.id, waiting.bcid);
  const Segment& segment = segments_.of(number);
  const Sequence before = std::max(link.position(), state.floor);
  waiting.fate = Fate::decided;
  if (events_ == nullptr && number < before) {
    // A link goes forward only, so no event gets two of its chunks. If it was too far ahead, it is late until it comes there
    // again.
    waiting.decision = {};
    if (number == taken_for && link.position() >= state.floor) return;
    state.floor = before;
  }
  waiting.decision = {.verdict = Verdict::take,
                      .doubtful = doubtful || number == untold_restart_ || restarts_untold(link, number, waiting.id),
                      .unproven = state.link->doubtful,
                      .sequence = number,
                      .from = before,
                      .resets = static_cast<std::uint32_t>(segment.resets),
                      .rounds = static_cast<std::uint32_t>(segment.rounds),
                      .base = segment.base};
  if (number < oldest_ || (events_ == nullptr && number < before)) {
    waiting.decision.verdict = Verdict::late;
  } else if (events_ != nullptr && events_->came(number)) {
    waiting.decision.verdict = Verdict::duplicate;
  }
  const Sequence last = before - link.stride;
  if (events_ != nullptr && states_.size() > 1 && number > last && number - last <= 4 * states_.size()) {
    // The events of a group may be dealt anew to its links: two equal steps of a link set its stride. A link alone has every
    // event: two equal steps of random triggers mean nothing.
    if (number - last == state.last_step) link.stride = static_cast<std::uint16_t>(state.last_step);
    state.last_step = number - last;
  }
  const std::uint64_t skipped = number - before;  // a huge number if the event lies before
  link.history = (skipped >= kHistory ? 0 : link.history << skipped) << 1 | 1;
  link.next.store(number + link.stride, std::memory_order_relaxed);
  enter(link, segment);
  link.here.store(true, std::memory_order_relaxed);
}

// The link's next event is of this segment.
void Sequencer::enter(LinkSequence& link, const Segment& segment) const {
  link.base = segment.base;
  link.resets = static_cast<std::uint32_t>(segment.resets);
  link.rounds = static_cast<std::uint32_t>(segment.rounds);
  link.expected = settings_.format.of(segment.resets, link.position() - segment.base);
}

// True if a link that was elsewhere has an id near zero with too few bits: a reset looks like a jump.
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
  state.left.reset();
  if (link.here.exchange(false, std::memory_order_relaxed)) state.left = place_of(link);
  set(state, Stand::away);
  state.away_since = clock(state);
  state.left_clock = readers_[state.reader].clock;
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
  follow(state);
  settle_aside(state);
  return Step::done;
}

// The chunks aside are out of sequence; the link is again where it left.
void Sequencer::refute(State& state) {
  for (std::size_t i = 0; i < state.placed; ++i) {
    if (at(state, i).fate != Fate::aside) continue;
    at(state, i).fate = Fate::decided;
    at(state, i).decision = {};
  }
  if (!state.away()) return;
  set(state, Stand::goes_on);
  state.link->here.store(state.left.has_value(), std::memory_order_relaxed);
}

// Takes the chunks aside that are reachable by now.
void Sequencer::settle_aside(State& state) {
  if (!state.away() || !begun()) return;
  const bool patient = state.placed == 0 || clock(state) - at(state, 0).since < settings_.timeout_ns / 2;
  if (state.chunks_there < 2 && patient && !over_) return;
  // Finds the last chunk with a known segment and with room: a link that is far ahead does not come in step by step.
  const auto has_place = [&](const Waiting& waiting) {
    const auto number = waiting.fate == Fate::aside ? segments_.number(waiting.place) : std::nullopt;
    return number && makes_room(state, *number);
  };
  std::size_t known = state.placed;
  while (known != 0 && !has_place(at(state, known - 1))) --known;
  const auto newest = state.placed == 0 ? std::nullopt : segments_.number(at(state, state.placed - 1).place);
  if (newest && *newest <= std::max(believed_, front()) + settings_.reach) set(state, Stand::followed);
  if (known == 0 || !(state.stand == Stand::followed || reachable(state, at(state, known - 1).place))) return;
  // By its chunks the segment is longer than by those of the others.
  if (known < state.placed && at(state, known).place.resets == at(state, known - 1).place.resets &&
      !segments_.number(at(state, known).place))
    return;
  for (std::size_t i = 0; i < state.placed; ++i) {
    const Waiting& waiting = at(state, i);
    if (waiting.fate != Fate::aside) continue;
    const auto number = segments_.number(waiting.place);
    if (!number && !state.link->here.load(std::memory_order_relaxed)) {  // of a place that was not followed
      at(state, i).fate = Fate::decided;
      at(state, i).decision = {};
      continue;
    }
    if (!number || !in_window(state, *number)) {
      const bool followed = state.stand == Stand::followed && number;
      if (state.link->here.load(std::memory_order_relaxed)) leave(state);
      set(state, followed ? Stand::followed : Stand::away);
      return;
    }
    decide_taken(state, i, *number, false);
  }
  if (state.link->here.load(std::memory_order_relaxed)) set(state, Stand::goes_on);
}

}  // namespace rodeo::readout
