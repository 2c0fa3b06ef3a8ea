#include "readout/sequence/room.h"

#include <algorithm>

namespace rodeo::readout {

bool Room::has_room(const Link& link, Sequence number) const {
  if (number < links_.oldest + settings_.window) return true;
  return links_.all_over() ? is_last(link) : may_close(link, number - settings_.window);
}

// At the end, the links of a FULL group that have chunks to judge go on in turn: always the link that is furthest behind.
bool Room::is_last(const Link& link) const {
  return !links_.is_round_robin() || std::ranges::none_of(links_, [&](const Link& other) {
    return !other.chunks.all_placed() && other.position() < link.position();
  });
}

// True if more links of the window have passed this event than have still to come to it: the window may move on.
bool Room::may_close(const Link& of, Sequence oldest) const {
  std::uint32_t passed = 0;
  std::uint32_t behind = 0;
  for (const Link& link : links_) {
    if (link.window != of.window || link.removed()) continue;
    const auto gone_to = link.away() ? numbers_.number(link.going) : std::nullopt;
    if (std::max({link.position(), link.far, gone_to.value_or(0)}) > oldest)
      ++passed;
    else if (!link.away() && links_.is_live(link) && link.position() != link.stalled)
      ++behind;
  }
  return passed > behind;
}

std::optional<Sequence> Room::reachable(const Link& link, const Place& place) const {
  const auto number = numbers_.number(place);
  if (!number) return std::nullopt;
  const bool here = link.here();
  if (!here && *number <= links_.followed_to + settings_.reach) return number;  // the window moves for a majority
  if (!has_room(link, *number)) return std::nullopt;
  if (here && numbers_.is_near(link.sequence.place(), place, links_.spread(link))) return number;
  if (*number <= (here ? links_.front_of_others(link) : links_.front()) + settings_.reach) return number;
  return std::nullopt;
}

bool Room::make_room(const Link& link, Sequence number) {
  if (has_room(link, number)) return true;
  if (!waits_.has_waited_long(link)) return false;
  for (Link& other : links_) {
    if (waits_.stands_still(other, link)) other.stalled = other.position();
  }
  return has_room(link, number);
}

}  // namespace rodeo::readout
