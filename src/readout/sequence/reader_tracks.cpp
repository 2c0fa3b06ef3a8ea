#include "readout/sequence/reader_tracks.h"

namespace rodeo::readout {

void ReaderTrack::report(const Point& point) {
  const std::lock_guard lock(mutex_);
  clock_ = point.clock;
  if (!begin_clock_) begin_clock_ = point.clock;
  newest_ = point;
  const bool far = count_ == 0 || point.place.resets != this->point(count_ - 1).place.resets ||
                   point.number - this->point(count_ - 1).number >= spacing_;
  if (far) points_[count_++ % kPoints] = point;
}

void ReaderTrack::report_clock(std::uint64_t clock) {
  const std::lock_guard lock(mutex_);
  clock_ = clock;
}

void ReaderTrack::clear() {
  const std::lock_guard lock(mutex_);
  newest_ = {};
  count_ = 0;
}

void ReaderTrack::report_leaving(const Place& to) {
  const std::lock_guard lock(mutex_);
  left_to_ = to;
}

void ReaderTrack::report_return() {
  const std::lock_guard lock(mutex_);
  left_to_.reset();
}

void ReaderTrack::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
}

std::optional<ReaderTrack::Position> ReaderTrack::position_after(std::uint64_t clock) const {
  const std::lock_guard lock(mutex_);
  if (left_to_) return Position{*left_to_, true};
  return newest_.number != 0 && clock_ >= clock ? std::optional(Position{newest_.place, false}) : std::nullopt;
}

// The last point at or before this clock.
std::optional<ReaderTrack::Point> ReaderTrack::last_point_at(std::uint64_t clock) const {
  if (newest_.number != 0 && newest_.clock <= clock) return newest_;
  for (std::uint64_t i = count_; i > first_point(); --i) {
    if (point(i - 1).clock <= clock) return point(i - 1);
  }
  return std::nullopt;
}

// The furthest that it may have come since its newest point: twice its recent rate. It has not read so far, or its links
// were silent, too.
ReaderTrack::Point ReaderTrack::extrapolated(std::uint64_t clock) const {
  constexpr std::uint64_t kRecentPoints = 8;
  const Point& before = point(std::max(first_point(), count_ - std::min(count_, kRecentPoints)));
  const double events = static_cast<double>(newest_.number - before.number);
  const double time = static_cast<double>(newest_.clock - before.clock);
  const auto more =
      time > 0 ? static_cast<std::uint64_t>(2 * events / time * static_cast<double>(clock - newest_.clock)) : 0;
  return {clock,
          {newest_.place.resets, newest_.place.index + static_cast<std::int64_t>(more)},
          newest_.number + more,
          newest_.period};
}

std::optional<ReaderTrack::Range> ReaderTrack::range_between(std::uint64_t from, std::uint64_t to) const {
  const std::lock_guard lock(mutex_);
  const auto lowest = last_point_at(from);
  if (!lowest || to > newest_.clock + kStaleNs) return std::nullopt;
  for (std::uint64_t i = first_point(); i < count_; ++i) {
    if (point(i).clock >= to) return Range{*lowest, point(i)};
  }
  if (newest_.clock >= to) return Range{*lowest, newest_};
  return Range{*lowest, extrapolated(to)};
}

std::optional<std::uint64_t> ReaderTrack::events_since(const Place& place, std::uint64_t clock) const {
  const std::lock_guard lock(mutex_);
  const auto now = last_point_at(clock);
  if (!now) return std::nullopt;
  if (now->place <= place) return 0;
  for (std::uint64_t i = count_; i > first_point(); --i) {
    const Point& before = point(i - 1);
    if (before.place > place) continue;
    // The point is of an earlier epoch, whose end is unknown but lies before the next point: see below.
    if (before.place.resets != place.resets) break;
    Sequence number = before.number + static_cast<std::uint64_t>(place.index - before.place.index);
    if (i != count_) number = std::min(number, point(i).number);
    return now->number - std::min(number, now->number);
  }
  for (std::uint64_t i = first_point(); i < count_;
       ++i) {  // the place lies before all points that are kept, or between two epochs
    if (point(i).place > place) return now->number - std::min(point(i).number, now->number);
  }
  return 0;
}

std::optional<std::uint64_t> ReaderTrack::begin_clock() const {
  const std::lock_guard lock(mutex_);
  return begin_clock_;
}

bool ReaderTrack::has_read_to(std::uint64_t clock) const {
  const std::lock_guard lock(mutex_);
  return ended_ || clock_ >= clock;
}

std::uint64_t ReaderTrack::clock() const {
  const std::lock_guard lock(mutex_);
  return clock_;
}

void ReaderTracks::positions_after(const ReaderTrack& of, std::uint64_t clock,
                                   std::vector<ReaderTrack::Position>& places) const {
  places.clear();
  for (const ReaderTrack& other : readers_) {
    const auto place = &other == &of ? std::nullopt : other.position_after(clock);
    if (place) places.push_back(*place);
  }
}

std::optional<ReaderTrack::Range> ReaderTracks::range_between(const ReaderTrack& of, std::uint64_t from,
                                                              std::uint64_t to) const {
  std::optional<ReaderTrack::Range> first;
  std::optional<ReaderTrack::Range> second;
  std::size_t count = 0;
  for (const ReaderTrack& other : readers_) {
    const auto range = &other == &of ? std::nullopt : other.range_between(from, to);
    if (!range) continue;
    ++count;
    if (!first || range->low.place > first->low.place) {
      second = first;
      first = range;
    } else if (!second || range->low.place > second->low.place) {
      second = range;
    }
  }
  if (!second) return first;
  // Each reader counts its own numbers, so indices are compared.
  if (count == 2 && first->high.place.resets == second->high.place.resets && first->high.place > second->high.place) {
    const auto more = static_cast<std::uint64_t>(first->high.place.index - second->high.place.index);
    second->high.place = first->high.place;
    second->high.number += more;
  }
  return second;
}

std::optional<std::uint64_t> ReaderTracks::events_since(const ReaderTrack& of, const Place& place,
                                                        std::uint64_t clock) const {
  std::optional<std::uint64_t> most;
  std::optional<std::uint64_t> second;
  for (const ReaderTrack& other : readers_) {
    const auto events = &other == &of ? std::nullopt : other.events_since(place, clock);
    if (!events) continue;
    if (!most || *events > *most) {
      second = most;
      most = events;
    } else if (!second || *events > *second) {
      second = events;
    }
  }
  return second ? second : most;
}

std::uint64_t ReaderTracks::begin_clock(const ReaderTrack& of) const {
  std::uint64_t earliest = ~std::uint64_t{0};
  for (const ReaderTrack& other : readers_) {
    if (&other != &of) earliest = std::min(earliest, other.begin_clock().value_or(earliest));
  }
  return earliest;
}

bool ReaderTracks::any_other_read_to(const ReaderTrack& of, std::uint64_t clock) const {
  return std::ranges::any_of(readers_, [&](const ReaderTrack& other) { return &other != &of && other.has_read_to(clock); });
}

bool ReaderTracks::all_read_to(std::uint64_t clock) const {
  return std::ranges::all_of(readers_, [&](const ReaderTrack& one) { return one.has_read_to(clock); });
}

std::uint64_t ReaderTracks::sum_of_clocks() const {
  std::uint64_t sum = 0;
  for (const ReaderTrack& one : readers_) sum += one.clock();
  return sum;
}

}  // namespace rodeo::readout
