// Links that have gone away: which are followed, and to which place.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <utility>

#include "readout/sequence/credibility.h"

namespace rodeo::readout {

void Credibility::on_leave(Link& link) const {
  link.away_since = links_.clock(link);
  link.left_clock = links_.reader_of(link).clock;
  link.others_at = links_.frontier();
}

void Credibility::on_return(Link& link) const {
  Reader& reader = links_.reader_of(link);
  if (std::exchange(link.reported_leaving, false) && --reader.leaving == 0) reader.track->report_return();
}

// True if both have gone to about the same place: their chunks there overlap, or nearly.
bool Credibility::are_together(const Link& a, const Link& b) const {
  const auto room = static_cast<std::int64_t>(settings_.reach + std::uint64_t{settings_.step} * a.sequence.stride);
  const auto beyond = [&](const Place& place) { return Place{place.resets, place.index + room}; };
  return a.first_aside() <= beyond(b.going) && b.first_aside() <= beyond(a.going);
}

// True if most others went on when it left: they contradict the link's counter.
bool Credibility::is_contradicted(const Link& link) const {
  if (!link.away() || !link.left) return false;
  const Sequence end = numbers_.segments().segment_of(link.others_at).end;
  std::uint32_t others = 0;
  std::uint32_t beyond = 0;
  for (const Link& other : links_) {
    if (&other == &link || other.removed() || !links_.is_live(other)) continue;
    ++others;
    const Sequence position = other.position();
    if (position < end && position > link.others_at + std::uint64_t{settings_.step} * other.sequence.stride) ++beyond;
  }
  return 2 * beyond > others;
}

bool Credibility::is_within_reach(const Link& link) const {
  const auto number = numbers_.begun() ? numbers_.number(link.first_aside()) : std::nullopt;
  return number && *number <= std::max(links_.front(), links_.followed_to) + settings_.reach;
}

Votes Credibility::votes(const Link& link) const {
  Votes votes;
  std::uint64_t chunks = 0;
  std::uint64_t events = 0;
  std::uint64_t since = link.away_since;
  for (const Link& other : links_) {
    if (other.removed() || !goes_with(link, other)) continue;
    ++votes.in_favor;
    chunks += other.chunks_there;
    events = std::max(events, other.chunks_there * other.sequence.stride);
    since = std::min(since, other.away_since);
    if (other.left) votes.left = std::max(votes.left, *other.left);
  }
  votes.has_enough_chunks = chunks >= 2 || links_.all_over();
  if (!votes.has_enough_chunks) return votes;
  votes.has_lasted = events > 2 * settings_.reach + std::uint64_t{settings_.step} * link.sequence.stride ||
                     links_.clock(link) - since > settings_.timeout_ns || links_.all_over();
  for (const Link& other : links_) {
    if (other.removed() || !links_.is_live(other)) continue;
    ++votes.live;
    const Place goes_on{votes.left.resets, votes.left.index + std::int64_t{settings_.step} * other.sequence.stride};
    if (other.here() && other.sequence.place() > goes_on) ++votes.against;
  }
  return votes;
}

Place Credibility::group_begin(const Link& link) const {
  // Looks for the lowest place at which they begin, down from the latest first chunk of all of them.
  Place latest = link.first_aside();
  for (const Link& other : links_) {
    if (goes_with(link, other)) latest = std::max(latest, other.first_aside());
  }
  // First chunks in an earlier epoch count only if most links have them there; those more than a window before do not count.
  Place lowest = latest;
  Place before = latest;
  std::size_t group = 0;
  std::size_t longer = 0;
  for (const Link& other : links_) {
    if (!goes_with(link, other)) continue;
    ++group;
    const Place first = other.first_aside();
    if (first.resets != latest.resets) {
      ++longer;
      before = std::min(before, first);
    } else if (latest.index - first.index <= static_cast<std::int64_t>(settings_.window)) {
      lowest = std::min(lowest, first);
    }
  }
  return 2 * longer > group ? before : lowest;
}

bool Credibility::others_follow(Link& link, const Place& left) {
  Reader& reader = links_.reader_of(link);
  if (!link.left || !reader.has_others()) return true;
  if (!std::exchange(link.reported_leaving, true)) {
    ++reader.leaving;
    reader.track->report_leaving(link.first_aside());
  }
  const std::int64_t steps = std::int64_t{settings_.step} * links_.spread(link);
  const std::int64_t room = static_cast<std::int64_t>(settings_.reach) + steps;
  const Place first = link.first_aside();
  const Place goes_on{left.resets, left.index + steps};
  const Place there{first.resets, first.index - room};
  const bool by_reset = first.resets > left.resets;
  const auto is_there = [&](const ReaderTrack::Position& other) {
    const Place& place = other.place;
    const bool beside = place.resets == first.resets && std::abs(place.index - first.index) <= room;
    return beside || (!other.leaves && first > left && place >= there && (by_reset || place.resets == first.resets));
  };
  const auto goes_on_here = [&](const ReaderTrack::Position& other) {
    return !other.leaves && !is_there(other) && other.place > goes_on;
  };
  reader.tracks->positions_after(*reader.track, link.left_clock, others_);
  const auto with = std::ranges::count_if(others_, is_there);
  const auto against = std::ranges::count_if(others_, goes_on_here);
  if (with != 0 || against != 0) return with >= against;
  if (links_.all_over() || link.chunks.count() + 2 * settings_.step >= settings_.aside) return true;
  // Another reader goes away elsewhere. A reset is likelier than a jump.
  if (!by_reset && std::ranges::any_of(others_, &ReaderTrack::Position::leaves)) return false;
  return links_.clock(link) - link.away_since > settings_.timeout_ns;
}

bool Credibility::follow(const Link& link) {
  reached_.clear();
  for (Link& other : links_) {
    if (!goes_with(link, other)) continue;
    links_.set_phase(other, LinkPhase::followed);
    Sequence last = numbers_.segments().newest().first;
    for (std::size_t i = other.chunks.placed(); i-- > 0;) {
      const PendingChunk& chunk = other.chunks[i];
      const auto number = chunk.is_aside() ? numbers_.number(chunk.place) : std::nullopt;
      if (!number) continue;
      last = std::max(last, *number);
      break;
    }
    reached_.push_back(last);
  }
  // More than half of them have reached this number.
  std::ranges::nth_element(reached_, reached_.begin() + reached_.size() / 2, std::greater<>());
  const Sequence before = std::exchange(links_.followed_to, std::max(links_.followed_to, reached_[reached_.size() / 2]));
  return links_.followed_to != before;
}

}  // namespace rodeo::readout
