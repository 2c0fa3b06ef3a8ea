// How places - so many event counter resets, this index since the last - become one increasing sequence of event numbers.
//
// A segment is a stretch of consecutive indices. A reset begins one, and so does a jump too long to be filled with empty events. Between
// two segments some numbers stay free for links that still bring the old one: a number that lies beyond all that came of its segment is
// no event.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "rodeo/ids.h"

namespace rodeo::readout {

inline constexpr Sequence kNoEnd = std::numeric_limits<Sequence>::max();

struct Place {
  std::uint64_t resets = 0;  ///< unwrapped event counter resets, or restarts seen where ids do not carry them
  std::int64_t index = 0;    ///< unwrapped L1 id since then; below zero: before it

  auto operator<=>(const Place&) const = default;
};

struct Segment {
  std::uint64_t resets = 0;
  Sequence base = 0;      ///< number of index 0, which may lie before `first` (modulo 2^64)
  Sequence first = 0;     ///< its lowest number
  Sequence end = kNoEnd;  ///< the lowest number of the next segment

  Place place(Sequence number) const { return {resets, static_cast<std::int64_t>(number - base)}; }
  L1Id l1id(Sequence number) const {
    return L1Id::of(static_cast<std::uint32_t>(resets & 0xff), static_cast<std::uint32_t>(number - base));
  }
};

/// Not synchronised. Forgets the oldest beyond `most`; nothing is allocated after construction.
class Segments {
 public:
  explicit Segments(std::size_t most) : most_(most) { segments_.reserve(most); }

  bool empty() const { return segments_.empty(); }
  bool full() const { return segments_.size() >= most_; }
  const Segment& newest() const { return segments_.back(); }
  const Segment& oldest() const { return segments_.front(); }

  /// Position of the segment that has this number; of the nearest that is remembered for others.
  std::size_t find(Sequence number) const;
  const Segment& of(Sequence number) const { return segments_[find(number)]; }
  const Segment& operator[](std::size_t position) const { return segments_[position]; }
  std::size_t size() const { return segments_.size(); }

  /// The number of a place, if its segment is known and reaches so far.
  std::optional<Sequence> number(const Place& place) const;

  /// Begins a segment with this place as its lowest, at the number `first`, which lies above all that the one before has used.
  void open(const Place& lowest, Sequence first);

  /// Forgets what ends at or before this number.
  void forget(Sequence before);

 private:
  const std::size_t most_;
  std::vector<Segment> segments_;
};

}  // namespace rodeo::readout
