// Where the readers of one process are in the run. A group or ROB that cannot find its place by its own links asks other
// groups, ROBs and cards.
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

/// Where one reader was during the run. Its thread writes it, a few times a page; all threads read it.
class alignas(base::kCacheLine) ReaderTrack {
 public:
  /// `spacing`: events between two points that are kept.
  explicit ReaderTrack(std::uint64_t spacing = 256) : spacing_(spacing) {}

  struct Position {
    Place place;
    bool leaves = false;  ///< its links have gone away to this place, and are not followed so far
  };
  struct Point {
    std::uint64_t clock = 0;  ///< of the input: all events before `place` were sent by then
    Place place;
    Sequence number = 0;                       ///< of the place, by the reader's own count
    std::uint64_t period = ~std::uint64_t{0};  ///< events until an id comes again, as far as the reader knows
  };
  /// The reader was at `last_point_at` or beyond, and at `high` or before.
  struct Range {
    Point low;
    Point high;
    std::uint64_t events() const { return high.number - low.number; }
  };

  /// The reader has read all that was sent up to this clock, and its links have come to this point.
  void report(const Point& point);
  /// The reader has read all that was sent up to this clock, but does not know where its links are.
  void report_clock(std::uint64_t clock);
  /// Forgets all points: the reader's links were silent and have no place.
  void clear();
  /// Its links have gone away to this place, and are not followed so far; or they are back.
  void report_leaving(const Place& to);
  void report_return();
  /// It reads no more.
  void end();

  /// Where the reader is, if it has read what was sent up to this clock; or where its links have gone away to.
  std::optional<Position> position_after(std::uint64_t clock) const;
  /// Where it was between these two clocks; nothing if it had no events by `from`, or none in the 10 s before `to`.
  std::optional<Range> range_between(std::uint64_t from, std::uint64_t to) const;
  /// Events from this place to where the reader was at this clock; zero if it was before the place.
  std::optional<std::uint64_t> events_since(const Place& place, std::uint64_t clock) const;
  /// When it brought its first events; nothing before.
  std::optional<std::uint64_t> begin_clock() const;
  /// It has read what was sent up to this clock, or reads no more.
  bool has_read_to(std::uint64_t clock) const;
  std::uint64_t clock() const;

 private:
  static constexpr std::size_t kPoints = 256;
  static constexpr std::uint64_t kStaleNs = 10'000'000'000;

  const Point& point(std::uint64_t i) const { return points_[i % kPoints]; }
  std::uint64_t first_point() const { return count_ - std::min<std::uint64_t>(count_, kPoints); }
  std::optional<Point> last_point_at(std::uint64_t clock) const;
  Point extrapolated(std::uint64_t clock) const;

  const std::uint64_t spacing_;
  mutable std::mutex mutex_;
  std::array<Point, kPoints> points_{};
  std::uint64_t count_ = 0;  // of points; the last kPoints are kept
  Point newest_{};           // number 0: none
  std::uint64_t clock_ = 0;
  std::optional<std::uint64_t> begin_clock_;
  std::optional<Place> left_to_;
  bool ended_ = false;
};

/// For one process. Readers are added before the first of them begins.
class ReaderTracks {
 public:
  ReaderTrack& add(std::uint64_t spacing = 256) { return readers_.emplace_back(spacing); }
  bool has_others() const { return readers_.size() > 1; }

  /// The places of the other readers that have read what was sent up to this clock, or whose links have gone away.
  void positions_after(const ReaderTrack& of, std::uint64_t clock, std::vector<ReaderTrack::Position>& places) const;
  /// Where the foremost but one of the others was, so that one wrong counter does no harm. Of two others: a range with both.
  std::optional<ReaderTrack::Range> range_between(const ReaderTrack& of, std::uint64_t from, std::uint64_t to) const;
  /// Events by which the foremost but one of the others was beyond this place at this clock.
  std::optional<std::uint64_t> events_since(const ReaderTrack& of, const Place& place, std::uint64_t clock) const;
  /// When the first of the others brought its first events; the highest possible clock if none has.
  std::uint64_t begin_clock(const ReaderTrack& of) const;
  /// One of the others has read what was sent up to this clock.
  bool any_other_read_to(const ReaderTrack& of, std::uint64_t clock) const;
  /// All readers have read so far, or read no more.
  bool all_read_to(std::uint64_t clock) const;
  /// The sum of all readers' clocks: it changes while one of them reads.
  std::uint64_t sum_of_clocks() const;

 private:
  std::deque<ReaderTrack> readers_;
};

/// A second base class of Rodeo's builders: its workers share their places with the readers of other builders. Before
/// start().
class SharesReaderTracks {
 public:
  virtual void share(ReaderTracks& tracks) = 0;

 protected:
  ~SharesReaderTracks() = default;
};

}  // namespace rodeo::readout
