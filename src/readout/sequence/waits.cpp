#include "readout/sequence/waits.h"

#include <algorithm>
#include <tuple>

namespace rodeo::readout {

void Waits::note_oldest(std::size_t reader, Sequence oldest) {
  Sequence& known = oldest_open_[links_.reader(reader).window];
  known = std::max(known, oldest);
}

// ---- links

void Waits::on_departure(Link& link) {
  link.departure = ++departures_;
  link.offered = 0;
  for (Link& other : links_) {
    if (other.departure_position == other.position()) continue;
    other.departure_position = other.position();
    other.moved_departure = departures_;
  }
}

void Waits::block(Link& link) {
  if (link.phase != LinkPhase::normal) return;
  links_.set_phase(link, LinkPhase::blocked);
  on_departure(link);
}

void Waits::unblock(Link& link) {
  if (link.phase == LinkPhase::blocked) links_.set_phase(link, LinkPhase::normal);
}

bool Waits::may_be_resolved(const Link& link, std::size_t first, std::size_t end) const {
  const auto place = place_in_question(link);
  return place && others_may_show(link, *place, first, end);
}

bool Waits::others_may_show(const Link& link, const Place& beyond, std::size_t first, std::size_t end) const {
  for (std::size_t reader = first; reader < end; ++reader) {
    if (may_show(reader, link, beyond) && !gives_way(reader, link.reader)) return true;
  }
  return false;
}

bool Waits::may_show(std::size_t reader, const Link& link, const Place& beyond) const {
  if (has_shown(reader, link)) return false;
  bool lives = false;
  for (const Link& other : links_) {
    if (other.reader != reader || other.removed() || !links_.is_live(other)) continue;
    lives = true;
    const Place goes_on{beyond.resets, beyond.index + std::int64_t{settings_.step} * other.sequence.stride};
    if (other.away() ? other.going > goes_on : other.here() && other.sequence.place() > goes_on) return false;
  }
  return lives;
}

// True if the link need not wait for this reader: it has had nothing to read since the link left, has ended, or is the
// link's own.
bool Waits::has_shown(std::size_t reader, const Link& link) const {
  return reader == link.reader || links_.reader(reader).over || links_.reader(reader).drained_departure >= link.departure;
}

bool Waits::stands_still(const Link& other, const Link& since) const {
  return other.position() == other.departure_position && other.moved_departure <= since.departure &&
         has_shown(other.reader, since);
}

// The place beyond which a waiting link wants to see others; nothing if it waits for none.
std::optional<Place> Waits::place_in_question(const Link& link) const {
  if (link.phase == LinkPhase::blocked) return link.sequence.place();
  if (!link.away() || credibility_.is_alone(link)) return std::nullopt;
  // Its new place is known, so the others may be on their way to it.
  if (numbers_.begun() && numbers_.number(link.first_aside()))
    return Place{link.going.resets, link.going.index - static_cast<std::int64_t>(settings_.reach + settings_.step)};
  return link.left.value_or(Place{});
}

bool Waits::spans_far(const Link& link) const {
  if (link.phase == LinkPhase::blocked) return link.chunks.count() > settings_.step;
  return link.away() && link.going.index - link.first_aside().index > static_cast<std::int64_t>(settings_.reach);
}

// ---- readers

bool Waits::waits_for(std::size_t reader, std::size_t other) const {
  const std::size_t with = links_.reader(reader).waits_for_link;
  if (with == Reader::kNothing || with == Reader::kConsumers || reader == other) return false;
  // A reader that has read everything keeps events open only for its waiting chunks.
  const bool holds_events = !links_.reader(other).over || links_.reader(other).waiting != 0;
  if (with == Reader::kRoom) return oldest_of(other) < oldest_of(reader) && holds_events;
  const auto place = place_in_question(links_[with]);
  return place && may_show(other, links_[with], *place);
}

// True if `reader` is ahead of `other` and waits for it, perhaps by way of others. Readers of one window are one thread: all
// of them wait.
bool Waits::gives_way(std::size_t reader, std::size_t other) const {
  if (!is_behind(other, reader)) return false;
  reached_.assign(1, reader);
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    for (std::size_t next = 0; next < links_.readers(); ++next) {
      if (!waits_for(reached_[i], next)) continue;
      if (links_.reader(next).window == links_.reader(other).window) return true;
      if (std::ranges::find(reached_, next) == reached_.end()) reached_.push_back(next);
    }
  }
  return false;
}

bool Waits::any_reader_proceeds() const {
  for (std::size_t reader = 0; reader < links_.readers(); ++reader) {
    bool waits = links_.reader(reader).over;
    for (std::size_t other = 0; other < links_.readers() && !waits; ++other)
      waits = waits_for(reader, other) && !gives_way(other, reader);
    if (!waits) return true;
  }
  return false;
}

// Orders all threads that read, so that of threads that wait for each other one goes on.
bool Waits::is_behind(std::size_t reader, std::size_t other) const {
  const auto order = [&](std::size_t of) {
    const std::size_t window = links_.reader(of).window;
    return std::tuple(oldest_of(of), front_of(window), window);
  };
  return order(reader) < order(other);
}

// How far the links of a window have come.
Sequence Waits::front_of(std::size_t window) const {
  Sequence front = 0;
  for (const Link& link : links_) {
    if (link.window == window && !link.removed()) front = std::max(front, link.position());
  }
  return front;
}

}  // namespace rodeo::readout
