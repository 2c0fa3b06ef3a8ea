// Waits: for what other readers may show, and for room in the window.
#include "readout/sequence/sequencer.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace rodeo::readout {

// True if the reader has live links, but none has gone on beyond where this link left: it may not have read so far.
bool Sequencer::untold_by(const State& state, const Place& left, std::size_t reader) const {
  if (told(state, reader)) return false;
  bool lives = false;
  for (const State& other : states_) {
    if (other.reader != reader || other.link->removed.load(std::memory_order_relaxed) || !live(other)) continue;
    lives = true;
    const Place goes_on{left.resets, left.index + std::int64_t{settings_.step} * other.link->stride};
    const bool known = other.away() || other.link->here.load(std::memory_order_relaxed);
    if (known && (other.away() ? other.going : place_of(*other.link)) > goes_on) return false;
  }
  return lives;
}

bool Sequencer::untold(const State& state, const Place& left, std::size_t first, std::size_t end) const {
  for (std::size_t reader = first; reader < end; ++reader) {
    if (untold_by(state, left, reader) && !gives_way(reader, state.reader)) return true;
  }
  return false;
}

// True if there is nothing to wait for: the reader has had nothing to read since the link left, has ended, or is the link's
// own.
bool Sequencer::told(const State& state, std::size_t reader) const {
  const Reader& of = readers_[reader];
  return reader == state.reader || of.over || of.looked >= state.departure;
}

// The place beyond which a waiting link wants to see others; nothing if it waits for none.
std::optional<Place> Sequencer::asks(const State& state) const {
  if (state.stand == Stand::blocked) return place_of(*state.link);
  if (!state.away() || state.alone || contradicted(state)) return std::nullopt;
  // Its new place is known, so the others may be on their way to it.
  if (begun() && segments_.number(first_aside(state)))
    return Place{state.going.resets, state.going.index - static_cast<std::int64_t>(settings_.reach + settings_.step)};
  return state.left.value_or(Place{});
}

bool Sequencer::waits_for(std::size_t reader, std::size_t other) const {
  const Reader& of = readers_[reader];
  if (of.waits_with == kNothing || of.waits_with == kConsumers || reader == other) return false;
  if (of.waits_with == kRoom) return oldest_of(other) < oldest_of(reader) && holds_events(other);
  const State& state = states_[of.waits_with];
  const auto place = asks(state);
  return place && untold_by(state, *place, other);
}

// A reader that has read everything keeps events open only for its waiting chunks.
bool Sequencer::holds_events(std::size_t reader) const {
  return !readers_[reader].over ||
         std::ranges::any_of(states_, [&](const State& of) { return of.reader == reader && of.count != 0; });
}

// True if `reader` is ahead of `other` and waits for it, perhaps by way of others. Readers of one window are one thread: all
// of them wait.
bool Sequencer::gives_way(std::size_t reader, std::size_t other) const {
  if (!behind(other, reader)) return false;
  reached_readers_.assign(1, reader);
  for (std::size_t i = 0; i < reached_readers_.size(); ++i) {
    for (std::size_t next = 0; next < readers_.size(); ++next) {
      if (!waits_for(reached_readers_[i], next)) continue;
      if (readers_[next].window == readers_[other].window) return true;
      if (std::ranges::find(reached_readers_, next) == reached_readers_.end()) reached_readers_.push_back(next);
    }
  }
  return false;
}

bool Sequencer::someone_goes_on() const {
  for (std::size_t reader = 0; reader < readers_.size(); ++reader) {
    bool waits = readers_[reader].over;
    for (std::size_t other = 0; other < readers_.size() && !waits; ++other)
      waits = waits_for(reader, other) && !gives_way(other, reader);
    if (!waits) return true;
  }
  return false;
}

// Orders all threads that read, so that of threads that wait for each other one goes on.
bool Sequencer::behind(std::size_t reader, std::size_t other) const {
  const auto order = [&](std::size_t of) {
    return std::tuple(oldest_of(of), front_of(readers_[of].window), readers_[of].window);
  };
  return order(reader) < order(other);
}

// How far the links of a window have come.
Sequence Sequencer::front_of(std::size_t window) const {
  Sequence front = 0;
  for (const State& state : states_) {
    if (state.window == window && !state.link->removed.load(std::memory_order_relaxed))
      front = std::max(front, state.link->position());
  }
  return front;
}

bool Sequencer::reaches_far(std::size_t link) const {
  const State& state = states_[link];
  if (state.stand == Stand::blocked) return state.count > settings_.step;
  return state.away() && state.going.index - first_aside(state).index > static_cast<std::int64_t>(settings_.reach);
}

bool Sequencer::may_be_told(std::size_t link, std::size_t first, std::size_t end) const {
  const auto place = asks(states_[link]);
  return place && untold(states_[link], *place, first, end);
}

// True if the window has room for this number; else the link waits.
bool Sequencer::finds_room(State& state, Sequence number) {
  if (in_window(state, number)) return true;
  others_may_tell(state);
  return makes_room(state, number);
}

// When the link has waited long, it no longer waits for links that have not moved since.
bool Sequencer::makes_room(State& state, Sequence number) {
  if (in_window(state, number)) return true;
  if (state.offered_since < 2 * settings_.reach + settings_.step) return false;
  for (State& other : states_) {
    const Sequence position = other.link->position();
    if (position == other.then && other.moved <= state.departure && told(state, other.reader)) other.stalled = position;
  }
  return in_window(state, number);
}

// Readers that have not read so far may hold up the list, too.
Sequencer::Step Sequencer::wait_for_list(State& state) {
  others_may_tell(state);
  return Step::wait;
}

// From now on the link waits for readers that have not read so far. True if there are any.
bool Sequencer::others_may_tell(State& state) {
  if (state.stand == Stand::goes_on) {
    set(state, Stand::blocked);
    note_departure(state);
  }
  return untold(state, place_of(*state.link), 0, readers_.size());
}

void Sequencer::note_departure(State& state) {
  state.departure = ++departures_;
  state.offered_since = 0;
  for (State& other : states_) {
    if (other.then == other.link->position()) continue;
    other.then = other.link->position();
    other.moved = departures_;
  }
}

void Sequencer::set(State& state, Stand stand) {
  const auto held_up = [](Stand of) { return of == Stand::goes_on ? 0U : 1U; };
  held_up_.fetch_add(held_up(stand) - held_up(state.stand), std::memory_order_relaxed);
  state.stand = stand;
  if (state.away() || !std::exchange(state.told_leaving, false)) return;
  Reader& reader = readers_[state.reader];
  if (--reader.leaving == 0) reader.standing->stay();
}

void Sequencer::unblock(State& state) {
  if (state.stand == Stand::blocked) set(state, Stand::goes_on);
}

}  // namespace rodeo::readout
