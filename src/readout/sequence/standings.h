// Where the readers of one process are in the run. A group or ROB whose own links cannot say where it is asks the readers of other groups, ROBs and cards.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "base/spsc_ring.h"
#include "readout/sequence/segments.h"

namespace rodeo::readout {

/// The way of one reader through the run. Its thread writes it, a few times a page; all threads read it.
class alignas(base::kCacheLine) Standing {
 public:
  /// `spacing`: events between two points that are kept.
  explicit Standing(std::uint64_t spacing = 256) : spacing_(spacing) {}

  struct Now {
    Place place;
    bool leaves = false;  ///< its links have gone away to there, and are not followed so far
  };
  struct Point {
    std::uint64_t clock = 0;  ///< of the input: all events before `place` were sent by then
    Place place;
    Sequence number = 0;  ///< of the place, by the reader's own count
  };
  /// It was at `low` or beyond, and at `high` or before.
  struct Range {
    Point low;
    Point high;
    std::uint64_t events() const { return high.number - low.number; }
  };

  /// The reader has read all that was sent up to this clock, and its links have come to this point.
  void tell(const Point& point);
  /// The reader has read all that was sent up to this clock, and cannot say where its links are.
  void tell_nothing(std::uint64_t clock);
  /// Its links were silent and have no place: the points are of no use any more.
  void lapse();
  void leave(const Place& to);
  void stay();
  /// It reads no more.
  void end();

  /// Where it is, if it has read what was sent up to this clock.
  std::optional<Now> after(std::uint64_t clock) const;
  /// Where it was between these two clocks. Nothing if it has not come so far, or has brought nothing for 10 s.
  std::optional<Range> at(std::uint64_t from, std::uint64_t to) const;
  /// Events from this place to where the reader was at this clock; zero if it was before the place.
  std::optional<std::uint64_t> events_since(const Place& place, std::uint64_t clock) const;
  /// When it brought its first events; nothing before.
  std::optional<std::uint64_t> begun() const;
  /// It has read what was sent up to this clock, or reads no more.
  bool has_come_to(std::uint64_t clock) const;
  std::uint64_t clock() const;

 private:
  static constexpr std::size_t kPoints = 256;
  static constexpr std::uint64_t kStaleNs = 10'000'000'000;

  const Point& point(std::uint64_t i) const { return points_[i % kPoints]; }
  std::uint64_t first_point() const { return count_ - std::min<std::uint64_t>(count_, kPoints); }
  std::optional<Point> low(std::uint64_t clock) const;
  Point extrapolated(std::uint64_t clock) const;

  const std::uint64_t spacing_;
  mutable std::mutex mutex_;
  std::array<Point, kPoints> points_{};
  std::uint64_t count_ = 0;  // of points; the last kPoints are kept
  Point newest_{};           // number 0: none
  std::uint64_t clock_ = 0;
  std::optional<std::uint64_t> begun_;
  std::optional<Place> left_to_;
  bool ended_ = false;
};

/// Of one process. Readers are added before the first of them begins.
class Standings {
 public:
  Standing& add(std::uint64_t spacing = 256) { return readers_.emplace_back(spacing); }
  bool has_others() const { return readers_.size() > 1; }

  /// Where the others are that have read what was sent up to this clock.
  void after(const Standing& of, std::uint64_t clock, std::vector<Standing::Now>& places) const;
  /// The foremost but one of the others, so that one that lies is not believed; of two that contradict each other a range with both.
  std::optional<Standing::Range> at(const Standing& of, std::uint64_t from, std::uint64_t to) const;
  /// Events that most of the others have come beyond this place by this clock.
  std::optional<std::uint64_t> events_since(const Standing& of, const Place& place, std::uint64_t clock) const;
  /// When the first of the others brought its first events; the highest clock before.
  std::uint64_t begun(const Standing& of) const;
  /// One of the others has read what was sent up to this clock.
  bool has_read(const Standing& of, std::uint64_t clock) const;
  /// All have.
  bool have_come_to(std::uint64_t clock) const;
  /// The sum of the others' clocks: it changes while one of them reads.
  std::uint64_t clocks() const;

 private:
  std::deque<Standing> readers_;
};

/// A second base of our builders: what its workers know of other builders' readers. Before start().
class SharesStandings {
 public:
  virtual void share(Standings& standings) = 0;

 protected:
  ~SharesStandings() = default;
};

}  // namespace rodeo::readout
