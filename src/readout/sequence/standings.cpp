#include "readout/sequence/standings.h"

namespace rodeo::readout {

void Standing::report(const Point& point) {
  const std::lock_guard lock(mutex_);
  clock_ = point.clock;
  if (!begun_) begun_ = point.clock;
  newest_ = point;
  const bool far = count_ == 0 || point.place.resets != this->point(count_ - 1).place.resets ||
                   point.number - this->point(count_ - 1).number >= spacing_;
  if (far) points_[count_++ % kPoints] = point;
}

void Standing::report_clock(std::uint64_t clock) {
  const std::lock_guard lock(mutex_);
  clock_ = clock;
}

void Standing::forget() {
  const std::lock_guard lock(mutex_);
  newest_ = {};
  count_ = 0;
}

void Standing::leave(const Place& to) {
  const std::lock_guard lock(mutex_);
  left_to_ = to;
}

void Standing::come_back() {
  const std::lock_guard lock(mutex_);
  left_to_.reset();
}

void Standing::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
}

std::optional<Standing::Now> Standing::after(std::uint64_t clock) const {
  const std::lock_guard lock(mutex_);
  if (left_to_) return Now{*left_to_, true};
  return newest_.number != 0 && clock_ >= clock ? std::optional(Now{newest_.place, false}) : std::nullopt;
}

// The last point at or before this clock.
std::optional<Standing::Point> Standing::low(std::uint64_t clock) const {
  if (newest_.number != 0 && newest_.clock <= clock) return newest_;
  for (std::uint64_t i = count_; i > first_point(); --i) {
    if (point(i - 1).clock <= clock) return point(i - 1);
  }
  return std::nullopt;
}

// The furthest that it may have come since its newest point: twice its recent rate. It has not read so far, or its links
// were silent, too.
Standing::Point Standing::extrapolated(std::uint64_t clock) const {
  constexpr std::uint64_t kOfLate = 8;
  const Point& before = point(std::max(first_point(), count_ - std::min(count_, kOfLate)));
  const double events = static_cast<double>(newest_.number - before.number);
  const double time = static_cast<double>(newest_.clock - before.clock);
  const auto more =
      time > 0 ? static_cast<std::uint64_t>(2 * events / time * static_cast<double>(clock - newest_.clock)) : 0;
  return {clock,
          {newest_.place.resets, newest_.place.index + static_cast<std::int64_t>(more)},
          newest_.number + more,
          newest_.period};
}

std::optional<Standing::Range> Standing::at(std::uint64_t from, std::uint64_t to) const {
  const std::lock_guard lock(mutex_);
  const auto lowest = low(from);
  if (!lowest || to > newest_.clock + kStaleNs) return std::nullopt;
  for (std::uint64_t i = first_point(); i < count_; ++i) {
    if (point(i).clock >= to) return Range{*lowest, point(i)};
  }
  if (newest_.clock >= to) return Range{*lowest, newest_};
  return Range{*lowest, extrapolated(to)};
}

std::optional<std::uint64_t> Standing::events_since(const Place& place, std::uint64_t clock) const {
  const std::lock_guard lock(mutex_);
  const auto now = low(clock);
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

std::optional<std::uint64_t> Standing::begun() const {
  const std::lock_guard lock(mutex_);
  return begun_;
}

bool Standing::has_come_to(std::uint64_t clock) const {
  const std::lock_guard lock(mutex_);
  return ended_ || clock_ >= clock;
}

std::uint64_t Standing::clock() const {
  const std::lock_guard lock(mutex_);
  return clock_;
}

void Standings::after(const Standing& of, std::uint64_t clock, std::vector<Standing::Now>& places) const {
  places.clear();
  for (const Standing& other : readers_) {
    const auto place = &other == &of ? std::nullopt : other.after(clock);
    if (place) places.push_back(*place);
  }
}

std::optional<Standing::Range> Standings::at(const Standing& of, std::uint64_t from, std::uint64_t to) const {
  std::optional<Standing::Range> first;
  std::optional<Standing::Range> second;
  std::size_t count = 0;
  for (const Standing& other : readers_) {
    const auto range = &other == &of ? std::nullopt : other.at(from, to);
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

std::optional<std::uint64_t> Standings::events_since(const Standing& of, const Place& place, std::uint64_t clock) const {
  std::optional<std::uint64_t> most;
  std::optional<std::uint64_t> second;
  for (const Standing& other : readers_) {
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

std::uint64_t Standings::begun(const Standing& of) const {
  std::uint64_t earliest = ~std::uint64_t{0};
  for (const Standing& other : readers_) {
    if (&other != &of) earliest = std::min(earliest, other.begun().value_or(earliest));
  }
  return earliest;
}

bool Standings::has_read(const Standing& of, std::uint64_t clock) const {
  return std::ranges::any_of(readers_, [&](const Standing& other) { return &other != &of && other.has_come_to(clock); });
}

bool Standings::have_come_to(std::uint64_t clock) const {
  return std::ranges::all_of(readers_, [&](const Standing& one) { return one.has_come_to(clock); });
}

std::uint64_t Standings::clocks() const {
  std::uint64_t sum = 0;
  for (const Standing& one : readers_) sum += one.clock();
  return sum;
}

}  // namespace rodeo::readout
