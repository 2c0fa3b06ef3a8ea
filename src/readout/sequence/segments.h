// How places - so many event counter resets, this index since the last - become one increasing sequence of event numbers.
//
// A segment is a stretch of consecutive indices. A reset begins one, and so does a jump too long to be filled with empty events. Between
// two segments some numbers stay free for links that still bring the old one: a number that lies beyond all that came of its segment is
// no event. The global id of an event follows from its segment (formats/event_ids.h).
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
/// The first resets of a run, so that one round below is still a number: a reset counter has 8 bits.
inline constexpr std::uint64_t kResetsOrigin = 256;

struct Place {
  std::uint64_t resets = 0;  ///< unwrapped event counter resets, or restarts seen where ids do not carry them
  std::int64_t index = 0;    ///< unwrapped L1 id since then; below zero: before it

  auto operator<=>(const Place&) const = default;
};

struct Segment {
  std::uint64_t resets = 0;
  Sequence base = 0;         ///< number of index 0, which may lie before `first` (modulo 2^64)
  Sequence first = 0;        ///< its lowest number
  Sequence end = kNoEnd;     ///< the lowest number of the next segment
  std::uint64_t rounds = 0;  ///< of global ids at index 0: resets, and wraps of L1 ids before the last reset
  formats::IdLayout ids = {};

  Place place(Sequence number) const { return {resets, index(number)}; }
  std::int64_t index(Sequence number) const { return static_cast<std::int64_t>(number - base); }
  L1Id l1id(Sequence number) const { return ids.l1id(resets, index(number)); }
  /// Of one event, from the L1 id that a chunk carries (IdLayout::global_id() of the L1 counter).
  std::uint32_t rounds_at(Sequence number) const {
    return static_cast<std::uint32_t>(rounds + static_cast<std::uint64_t>(ids.wraps(index(number))));
  }
  std::uint64_t global_id(Sequence number) const { return ids.global_id(rounds, index(number)); }
};

/// Not synchronised. Forgets the oldest beyond `most`; nothing is allocated after construction.
class Segments {
 public:
  explicit Segments(std::size_t most, formats::IdLayout ids = {}) : most_(most), ids_(ids) { segments_.reserve(most + 1); }

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

  /// Begins a segment with this place as its lowest, at the number `first`, which lies above all that the one before has used. `brought`: the place that
  /// came, at or above the lowest. `came`: the number behind the last that came of the segment before, by which its wraps are counted.
  void open(const Place& lowest, const Place& brought, Sequence first, Sequence came);
  void open(const Place& lowest, Sequence first, Sequence came) { open(lowest, lowest, first, came); }

  /// Forgets what ends at or before this number.
  void forget(Sequence before);

 private:
  std::uint64_t rounds_of(const Place& brought, std::uint64_t behind);

  const std::size_t most_;
  const formats::IdLayout ids_;
  std::uint64_t wraps_ = 0;  // of L1 ids, in the epochs before the newest
  std::uint64_t had_ = 0;    // behind all global ids of segments that higher ones have followed
  std::vector<Segment> segments_;
};

}  // namespace rodeo::readout
