// The vote of other groups, ROBs and cards, on links that go away without a majority of their own.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "readout/sequence/sequencer.h"

namespace rodeo::readout {

// True if, of the other readers that have gone on since these links left, at least as many are at the new place as go on at
// the old one. If there are neither, the links wait as long as there is room: until the time-out, and longer if another
// reader goes away elsewhere.
bool Sequencer::others_follow(State& state, const Place& left) {
  Reader& reader = readers_[state.reader];
  if (reader.standing == nullptr || !state.left || !reader.others->has_others()) return true;
  if (!std::exchange(state.told_leaving, true)) {
    ++reader.leaving;
    reader.standing->leave(first_aside(state));
  }
  reader.others->after(*reader.standing, state.left_clock, places_);
  const std::int64_t steps = std::int64_t{settings_.step} * spread(*state.link);
  const std::int64_t room = static_cast<std::int64_t>(settings_.reach) + steps;
  const Place first = first_aside(state);
  const Place goes_on{left.resets, left.index + steps};
  const Place there{first.resets, first.index - room};
  const bool by_reset = first.resets > left.resets;
  const auto is_there = [&](const Standing::Now& other) {
    const Place& place = other.place;
    const bool beside = place.resets == first.resets && std::abs(place.index - first.index) <= room;
    return beside || (!other.leaves && first > left && place >= there && (by_reset || place.resets == first.resets));
  };
  const auto goes_on_here = [&](const Standing::Now& other) {
    return !other.leaves && !is_there(other) && other.place > goes_on;
  };
  const auto with = std::ranges::count_if(places_, is_there);
  const auto against = std::ranges::count_if(places_, goes_on_here);
  if (with != 0 || against != 0) return with >= against;
  if (over_ || state.count + 2 * settings_.step >= settings_.aside) return true;
  // Another reader goes away elsewhere. A reset is likelier than a jump.
  if (!by_reset && std::ranges::any_of(places_, &Standing::Now::leaves)) return false;
  return clock(state) - state.away_since > settings_.timeout_ns;
}

}  // namespace rodeo::readout
