// Links that have gone away: which are followed, and to which place.
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

// True if both have gone to about the same place: their chunks there overlap, or nearly.
bool Sequencer::together(const State& a, const State& b) const {
  const auto room = static_cast<std::int64_t>(settings_.reach + std::uint64_t{settings_.step} * a.link->stride);
  const auto beyond = [&](const Place& place) { return Place{place.resets, place.index + room}; };
  return first_aside(a) <= beyond(b.going) && first_aside(b) <= beyond(a.going);
}

// True if most others went on when it left: they contradict the link's counter.
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

// Opens the place to which enough links have gone with this one. Each link asks only for itself, so many links at once cost
// no more each.
void Sequencer::follow(State& state) {
  state.alone = state.alone || contradicted(state);
  if (state.link->removed.load(std::memory_order_relaxed) || state.alone || !may_follow(state)) return;
  // Looks for the lowest place at which they begin, down from the latest first chunk of all of them.
  Place latest = first_aside(state);
  for (const State& other : states_) {
    if (other.away() && together(state, other) && !other.alone) latest = std::max(latest, first_aside(other));
  }
  // First chunks in an earlier epoch count only if most links have them there; those more than a window before do not count.
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

bool Sequencer::may_follow(State& state) {
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
  // One or two live links are not a majority against other groups, ROBs and cards.
  const auto followed_outside = [&] { return alive > 2 || others_follow(state, left); };
  if (2 * there > alive) return followed_outside();
  if (untold(state, left, 0, readers_.size())) return false;
  const bool long_enough = lasted > 2 * settings_.reach + std::uint64_t{settings_.step} * state.link->stride;
  return there > against && (long_enough || clock(state) - since > settings_.timeout_ns || over_) && followed_outside();
}

bool Sequencer::open(const State& state, const Place& lowest) {
  const auto reach = static_cast<std::int64_t>(settings_.reach);
  if (!begun()) {
    const Place first = first_round(lowest);
    begin({first.resets, first.index - std::min(reach, first.index)});
  } else if (const auto number = segments_.number(lowest); number && *number <= foremost() + settings_.window) {
    // Near enough to build the skipped events empty. With few bits, the counters may have restarted instead.
    const std::uint32_t id = settings_.format.of(lowest.resets, static_cast<std::uint64_t>(lowest.index));
    if (!settings_.format.shows_restarts() && id <= settings_.step && *number > foremost() + settings_.step)
      untold_restart_ = *number;
  } else {
    // Too far, or another segment. A reset begins at 0; the beginning of a jump, or of a restart elsewhere, is unknown.
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
    // Turns (turns.h) end at such a wide gap.
    segments_.open(begins, lowest,
                   foremost() + settings_.reach + 2 * std::uint64_t{settings_.step} * states_[0].link->stride, came());
  }
  // Finds the number that more than half of them have reached, by the last known number of each.
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

// One above the last number that came: from there on, numbers of the newest segment are not events.
Sequence Sequencer::came() const {
  Sequence came = run_first_;
  for (const State& of : states_) came = std::max(came, of.link->position() - of.link->stride + 1);
  return came;
}

// Some links may have begun before the counter came round: the run begins with their ids.
Place Sequencer::first_round(const Place& lowest) {
  if (lowest.index >= 0) return lowest;
  const auto period = static_cast<std::int64_t>(settings_.format.period());
  for (State& state : states_) {
    if (!state.away()) continue;
    state.going.index += period;
    for (std::size_t i = 0; i < state.placed; ++i) {
      if (at(state, i).fate == Fate::aside) at(state, i).place.index += period;
    }
  }
  return {lowest.resets, lowest.index + period};
}

void Sequencer::begin(const Place& lowest) {
  segments_.open(lowest, kOrigin, kOrigin);
  run_first_ = kOrigin;
  oldest_ = kOrigin;
  for (State& state : states_) {
    // A link that was restored before the run began takes part from the beginning.
    state.link->next.store(run_first_, std::memory_order_relaxed);
  }
  for (const Reader& reader : readers_) begun_at_ = std::max(begun_at_, reader.now);
  begun_.store(true, std::memory_order_release);
}

}  // namespace rodeo::readout
