// Who is followed where: links that have gone away.
#include "readout/sequence/sequencer.h"

#include <algorithm>
#include <functional>

namespace rodeo::readout {

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
  if (!state.away() || !state.left) return false;
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

// Opens what enough links have gone to with this one. Each link asks for itself, so that many links that go at once cost no more each.
void Sequencer::follow(State& state) {
  state.alone = state.alone || contradicted(state);
  if (state.link->removed.load(std::memory_order_relaxed) || state.alone || !may_follow(state)) return;
  // From where the first of them began, unless it has come there from a place of its own.
  Place latest = first_aside(state);
  for (const State& other : states_) {
    if (other.away() && together(state, other) && !other.alone) latest = std::max(latest, first_aside(other));
  }
  // What only few of them have brought before that - a reset, a jump - is not believed.
  Place lowest = latest;
  Place before = latest;
  std::size_t group = 0;
  std::size_t longer = 0;
  for (const State& other : states_) {
    if (!other.away() || !together(state, other) || other.alone) continue;
    ++group;
    const Place first = first_aside(other);
    if (first.resets == latest.resets && latest.index - first.index > static_cast<std::int64_t>(settings_.window)) continue;
    if (first.resets == latest.resets) {
      lowest = std::min(lowest, first);
    } else {
      ++longer;
      before = std::min(before, first);
    }
  }
  if (2 * longer > group) lowest = before;
  if (open(state, lowest)) version_.fetch_add(1, std::memory_order_release);
}

bool Sequencer::may_follow(State& state) const {
  if (begun()) {
    const auto number = segments_.number(first_aside(state));
    if (number && *number <= std::max(front(), believed_) + settings_.reach) return false;  // within reach already
  }
  std::uint64_t chunks = 0;
  std::uint64_t lasted = 0;
  std::uint32_t there = 0;
  std::uint64_t since = state.away_since;
  Place left{};
  for (const State& other : states_) {
    if (!other.away() || other.link->removed.load(std::memory_order_relaxed) || !together(state, other) || other.alone)
      continue;
    ++there;
    chunks += other.chunks_there;
    since = std::min(since, other.away_since);
    lasted = std::max(lasted, other.chunks_there * other.link->stride);
    if (other.left) left = std::max(left, *other.left);
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
  // Two links are no majority where others say something else.
  const auto followed_outside = [&] { return alive > 2 || others_follow(state, left); };
  if (2 * there > alive) return followed_outside();
  if (untold(state, left, 0, readers_.size())) return false;
  const bool long_enough = lasted > 2 * settings_.reach + std::uint64_t{settings_.step} * state.link->stride;
  return there > against && (long_enough || clock(state) - since > settings_.timeout_ns || over_) && followed_outside();
}

bool Sequencer::open(const State& state, const Place& lowest) {
  const auto reach = static_cast<std::int64_t>(settings_.reach);
  if (!begun()) {
    begin({lowest.resets, lowest.index - std::min(reach, lowest.index)});
  } else if (const auto number = segments_.number(lowest); number && *number <= foremost() + settings_.window) {
    // Near enough to build what was skipped as empty events. Few bits do not tell whether the counters have started again.
    const std::uint32_t id = settings_.format.of(lowest.resets, static_cast<std::uint64_t>(lowest.index));
    if (!settings_.format.shows_restarts() && id <= settings_.step && *number > foremost() + settings_.step)
      untold_restart_ = *number;
  } else {
    // Too far, or another segment. A reset begins at 0; where a jump or a restart in the midst begins, nobody knows.
    const bool from_zero = !number && (settings_.format.has_ecr() || lowest.index <= reach);
    const std::int64_t room = from_zero && lowest.index < static_cast<std::int64_t>(settings_.window)
                                  ? lowest.index
                                  : std::min(reach, lowest.index);
    const Place begins{lowest.resets, lowest.index - room};
    if (number) {
      skipped_.fetch_add(*number - static_cast<Sequence>(room) - came(), std::memory_order_relaxed);
    } else if (from_zero) {
      skipped_.fetch_add(static_cast<std::uint64_t>(begins.index), std::memory_order_relaxed);
    }
    // Turns (turns.h) do not outlive so wide a gap.
    segments_.open(begins, lowest,
                   foremost() + settings_.reach + 2 * std::uint64_t{settings_.step} * states_[0].link->stride, came());
  }
  // So far more than half of them have come: the last number of each that is known.
  reached_.clear();
  for (State& other : states_) {
    if (!other.away() || !together(state, other) || other.alone) continue;
    set(other, Stand::followed);
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

// Behind the last number that came: beyond it, numbers of the newest segment are no events.
Sequence Sequencer::came() const {
  Sequence came = run_first_;
  for (const State& of : states_) came = std::max(came, of.link->position() - of.link->stride + 1);
  return came;
}

void Sequencer::begin(const Place& lowest) {
  segments_.open(lowest, kOrigin, kOrigin);
  run_first_ = kOrigin;
  oldest_ = kOrigin;
  for (State& state : states_) {
    // What is restored while nothing has begun takes part from the beginning.
    state.link->next.store(run_first_, std::memory_order_relaxed);
  }
  for (const Reader& reader : readers_) begun_at_ = std::max(begun_at_, reader.now);
  begun_.store(true, std::memory_order_release);
}

}  // namespace rodeo::readout
