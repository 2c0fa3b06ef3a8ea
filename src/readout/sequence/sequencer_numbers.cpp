// The meaning of an id for a link, and the numbers that the link may come to.
#include "readout/sequence/sequencer.h"

#include <algorithm>
#include <cstdlib>

namespace rodeo::readout {

// The place of an extended L1 id: in the round of its resets that begins `behind` resets before; the next round of its 24
// bits, unless it is a little behind.
Place Sequencer::extended(const Place& from, std::uint32_t id, std::uint32_t behind) {
  const std::uint64_t on = ((id >> 24) - from.resets + behind) % kResetRound;
  const std::int64_t low = id & 0xffffffU;
  if (on != behind) return {from.resets + on - behind, low};
  constexpr std::int64_t kPeriod = 1 << 24;  // without a reset the L1 id goes on from 0 after its last
  constexpr std::int64_t kBehind = 1 << 20;
  const std::int64_t ahead = (low - from.index) & (kPeriod - 1);
  return {from.resets, from.index + (ahead < kPeriod - kBehind ? ahead : ahead - kPeriod)};
}

// The place of an id, for a link that is at `from`.
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

// The place of a link's first id before the run has begun: beside a link that has come already. Between their first chunks
// the L1 counter or the reset counter may have come round.
Place Sequencer::first_place(std::uint32_t id) const {
  const IdFormat& format = settings_.format;
  const Place first{kResetsOrigin + (format.has_ecr() ? id >> 24 : 0), id & format.low_mask()};
  for (const State& other : states_) {
    if (!other.away() || other.link->removed.load(std::memory_order_relaxed)) continue;
    const Place beside = first_aside(other);
    const Place place = nearest(beside, id);
    const auto apart = std::abs(place.index - beside.index);
    const bool near =
        place.resets == beside.resets ? apart <= static_cast<std::int64_t>(settings_.window) : format.has_ecr();
    if (near) return place;
  }
  return first;
}

// The place of an id, for a link of which nothing is known: it may be behind by a window.
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

// follows(), for a chunk that lies elsewhere: without a reset counter, a restart after it does not confirm its place.
bool Sequencer::confirms(const Place& from, const Place& to, std::uint32_t stride) const {
  return follows(from, to, stride) && (to.resets == from.resets || settings_.format.has_ecr());
}

// resolve(), but an id near zero after which `following` goes on is a restart of the counter, if resets show in no other
// way.
Place Sequencer::resolve_restart(const Place& from, const Waiting& chunk, const Waiting* following,
                                 std::uint32_t stride) const {
  const Place place = resolve(from, chunk.id, stride);
  const std::int64_t steps = std::int64_t{settings_.step} * stride;
  if (following == nullptr || place >= from || from.index - place.index <= steps || settings_.format.has_ecr() ||
      !settings_.format.shows_restarts() || chunk.id > steps)
    return place;
  const std::uint32_t on = (following->id - chunk.id) & settings_.format.low_mask();
  return on >= 1 && on <= steps ? Place{from.resets + 1, chunk.id} : place;
}

bool Sequencer::delivered(const State& state, Sequence number) const {
  if (events_ != nullptr) return events_->came(number);
  const Sequence next = state.link->position();
  return number < next && next - 1 - number < kHistory && (state.link->history >> (next - 1 - number) & 1U) != 0;
}

bool Sequencer::in_window(const State& state, Sequence number) const {
  if (number < oldest_ + settings_.window) return true;
  return over_ ? is_last(state) : may_close(state, number - settings_.window);
}

// At the end, the links of a FULL group that have chunks to judge go on in turn: always the link that is furthest behind.
bool Sequencer::is_last(const State& state) const {
  return events_ == nullptr || std::ranges::none_of(states_, [&](const State& other) {
           return other.placed < other.count && other.link->position() < state.link->position();
         });
}

std::optional<Sequence> Sequencer::reachable(const State& state, const Place& place) const {
  const auto number = segments_.number(place);
  if (!number) return std::nullopt;
  const LinkSequence& link = *state.link;
  const bool here = link.here.load(std::memory_order_relaxed);
  if (!here && *number <= believed_ + settings_.reach) return number;  // the window moves for a majority
  if (!in_window(state, *number)) return std::nullopt;
  if (here && near(place_of(link), place, spread(link))) return number;
  if (*number <= (here ? front_beside(state) : front()) + settings_.reach) return number;
  return std::nullopt;
}

// The foremost of the links that are here. front_beside(): of the other links of the same reader, if there are any.
Sequence Sequencer::front() const {
  Sequence front = 0;
  for (const State& state : states_) {
    if (is_here(state)) front = std::max(front, state.link->position());
  }
  return front;
}

Sequence Sequencer::front_beside(const State& of) const {
  Sequence front = 0;
  for (const State& state : states_) {
    if (&state != &of && state.reader == of.reader && is_here(state)) front = std::max(front, state.link->position());
  }
  return front != 0 ? front : this->front();
}

// The lowest number that no link has come to.
Sequence Sequencer::foremost() const {
  Sequence foremost = std::max({oldest_, believed_, run_first_});
  for (const State& state : states_) foremost = std::max(foremost, state.link->position() - state.link->stride + 1);
  return events_ == nullptr ? foremost : std::max(foremost, events_->head());
}

bool Sequencer::is_here(const State& state) const {
  return state.link->here.load(std::memory_order_relaxed) && !state.link->removed.load(std::memory_order_relaxed) &&
         live(state);
}

bool Sequencer::live(const State& state) const {
  const std::uint64_t seen = std::max(state.link->seen.load(std::memory_order_relaxed), readers_[state.reader].started);
  return clock(state) <= seen + settings_.timeout_ns;
}

// True if more links of the window have passed this event than have still to come to it: the window may move on.
bool Sequencer::may_close(const State& of, Sequence oldest) const {
  std::uint32_t passed = 0;
  std::uint32_t behind = 0;
  for (const State& state : states_) {
    const LinkSequence& link = *state.link;
    if (state.window != of.window || link.removed.load(std::memory_order_relaxed)) continue;
    const auto gone_to = state.away() ? segments_.number(state.going) : std::nullopt;
    if (std::max({link.position(), state.far, gone_to.value_or(0)}) > oldest)
      ++passed;
    else if (!state.away() && live(state) && link.position() != state.stalled)
      ++behind;
  }
  return passed > behind;
}

}  // namespace rodeo::readout
