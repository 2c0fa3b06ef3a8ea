// Turns places (a number of event counter resets, an index since the last one) into one increasing sequence of event
// numbers.
//
// A segment is a stretch of consecutive indices. A reset begins one; so does a jump that is too long to fill with empty
// events. Between two segments some numbers stay free for links that still bring the old one: a number above all that came
// of its segment is not an event. The segment also gives the global id of an event (formats/event_ids.h).
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "formats/event_ids.h"
#include "rodeo/ids.h"

namespace rodeo::readout {

inline constexpr Sequence kNoEnd = std::numeric_limits<Sequence>::max();
/// Resets at the start of a run. One round of an 8-bit reset counter below is still a number.
inline constexpr std::uint64_t kResetsOrigin = 256;

struct Place {
  std::uint64_t resets = 0;  ///< unwrapped event counter resets, or restarts seen where ids do not carry them
  std::int64_t index = 0;    ///< unwrapped L1 id since the last reset; below zero: before it

  auto operator<=>(const Place&) const = default;
};

struct Segment {
  std::uint64_t resets = 0;
  Sequence base = 0;         ///< number of index 0, which may lie before `first` (modulo 2^64)
  Sequence first = 0;        ///< its lowest number
  Sequence end = kNoEnd;     ///< the lowest number of the next segment
  std::uint64_t rounds = 0;  ///< of global ids at index 0: resets plus the wraps of L1 ids before the last reset
  formats::IdLayout ids = {};

  Place place(Sequence number) const { return {resets, index(number)}; }
  std::int64_t index(Sequence number) const { return static_cast<std::int64_t>(number - base); }
  L1Id l1id(Sequence number) const { return ids.l1id(resets, index(number)); }
  /// Rounds of one event; the L1 id of a chunk completes them (IdLayout::global_id() of the L1 counter).
  std::uint32_t rounds_at(Sequence number) const {
    return static_cast<std::uint32_t>(rounds + static_cast<std::uint64_t>(ids.wraps(index(number))));
  }
  std::uint64_t global_id(Sequence number) const { return ids.global_id(rounds, index(number)); }
};

/// Not synchronised. Keeps the newest `most` segments; allocates nothing after construction.
class Segments {
 public:
  explicit Segments(std::size_t most, formats::IdLayout ids = {}) : most_(most), ids_(ids) { segments_.reserve(most + 1); }

  bool empty() const { return segments_.empty(); }
  bool full() const { return segments_.size() >= most_; }
  /// Two more would not all be kept.
  bool nearly_full() const { return segments_.size() + 2 > most_; }
  const Segment& newest() const { return segments_.back(); }
  const Segment& oldest() const { return segments_.front(); }

  /// Position of the segment with this number, or of the nearest one that is remembered.
  std::size_t find(Sequence number) const;
  const Segment& segment_of(Sequence number) const { return segments_[find(number)]; }
  const Segment& operator[](std::size_t position) const { return segments_[position]; }
  std::size_t size() const { return segments_.size(); }

  /// The number of a place, if its segment is known and reaches so far.
  std::optional<Sequence> number(const Place& place) const;

  /// Begins a segment. Its lowest place gets the number `first`, above all numbers that the segment before has used.
  /// `brought`: the place that came, at or above the lowest. `arrived_end`: one above the last number that came of the
  /// segment before, whose wraps are counted up to there.
  void open(const Place& lowest, const Place& brought, Sequence first, Sequence arrived_end);
  void open(const Place& lowest, Sequence first, Sequence arrived_end) { open(lowest, lowest, first, arrived_end); }

  /// Forgets segments that end at or before this number, except the newest.
  void forget(Sequence before);

 private:
  std::uint64_t rounds_of(const Place& brought, std::uint64_t behind);

  const std::size_t most_;
  const formats::IdLayout ids_;
  std::uint64_t wraps_ = 0;         // of L1 ids, in the epochs before the newest
  std::uint64_t used_ids_end_ = 0;  // above all global ids of segments that a higher one has followed
  std::vector<Segment> segments_;
};

}  // namespace rodeo::readout
