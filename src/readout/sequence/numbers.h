// What number is this id? An id gives a place, and the segments of the run give its number.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "readout/sequence/link_sequence.h"
#include "readout/sequence/segments.h"
#include "readout/sequence/sequencer_settings.h"

namespace rodeo::readout {

/// The lowest number of a run. It is high, so that a number before the first event is still a number.
inline constexpr Sequence kRunFirst = Sequence{1} << 32;
/// Resets until a reset counter of 8 bits comes round.
inline constexpr std::uint32_t kResetRound = 256;

/// For one ROB or group. It knows ids, not links. Not synchronised, but for begun() and skipped().
class Numbers {
 public:
  explicit Numbers(const SequencerSettings& settings);

  // ---- the place of an id

  /// The place of an extended L1 id: in the round of its resets that begins `behind` resets before; the next round of its 24
  /// bits, unless it is a little behind.
  static Place extended(const Place& from, std::uint32_t id, std::uint32_t behind = kResetRound / 2);
  /// The place of an id, for a link that is at `from`. `stride`: events from one chunk of the link to the next.
  Place resolve(const Place& from, std::uint32_t id, std::uint32_t stride) const;
  /// resolve(), but an id near zero from which the next id goes on is a restart of the counter, if resets show in no other
  /// way.
  Place resolve_restart(const Place& from, std::uint32_t id, std::optional<std::uint32_t> next_id,
                        std::uint32_t stride) const;
  /// The place of an id, for a link of which nothing is known: it may be behind by a window.
  Place nearest_place(const Place& from, std::uint32_t id) const;
  /// The place of the first id of a run.
  Place first_place(std::uint32_t id) const;
  std::uint32_t id(const Place& place) const {
    return settings_.format.id_at(place.resets, static_cast<std::uint64_t>(place.index));
  }

  // ---- how places follow each other

  /// At most `step` events (of the stride) on, or as near to the beginning of the next epoch.
  bool is_near(const Place& from, const Place& to, std::uint32_t stride) const;
  bool follows(const Place& from, const Place& to, std::uint32_t stride) const;
  /// follows(), for a chunk that lies elsewhere: without a reset counter, a restart after it does not confirm its place.
  bool confirms(const Place& from, const Place& to, std::uint32_t stride) const;
  /// The counter has gone on within its epoch, by less than the window.
  bool rises(const Place& from, const Place& to) const;

  // ---- numbers

  /// True once the lowest number of the run is known. Any thread.
  bool begun() const { return begun_.load(std::memory_order_acquire); }
  Sequence run_first() const { return begun() ? kRunFirst : 0; }
  /// Events that are known to exist, but are too many to build empty. Any thread.
  std::uint64_t skipped() const { return skipped_.load(std::memory_order_relaxed); }
  const Segments& segments() const { return segments_; }
  Segments& segments() { return segments_; }
  std::optional<Sequence> number(const Place& place) const { return segments_.number(place); }
  Place place(Sequence number) const { return segments_.segment_of(number).place(number); }
  /// False if the segment of the link is over: its next number is of a later one, at another place.
  bool is_in_segment(const LinkSequence& link) const { return place(link.position()) == link.place(); }
  /// True if an id of the link's segment may also be one of the next segment: ids do not show resets.
  bool is_ambiguous(const LinkSequence& link) const;
  /// True if ids began anew near zero at this number: a reset, or a jump. It is not known which.
  bool is_unclear_restart(Sequence number) const { return number == unclear_restart_; }
  /// True if a link that was at `position` would come to this number by an id near zero that has too few bits: a reset looks
  /// like a jump.
  bool restarts_unclearly(Sequence position, Sequence number, std::uint32_t id) const;
  /// The link's next event is of this segment.
  void enter_segment(LinkSequence& link, const Segment& segment) const;
  /// The link's segment is over: its next event is of the next one.
  void enter_next_segment(LinkSequence& link) const;

  // ---- numbers with the same id

  /// Events from one with an id to the next one with the same id: of the last epochs, or of as many epochs as the reset
  /// counter tells apart.
  std::uint64_t unambiguous_period(Sequence number) const;
  /// True if the reset counter comes round in fewer events than the L1 id: resets alone do not prove a place.
  bool resets_wrap_first(Sequence number) const;
  /// True if ids repeat so seldom that a window has no id twice.
  bool is_wide(std::uint64_t period) const { return period / 4 >= settings_.window; }
  /// The nearest number with this id. A link may be far behind those that are read with it, but only a little ahead.
  std::optional<Sequence> nearest_number(Sequence at, std::uint32_t id) const;
  /// Calls f with all numbers from `lowest` up to below `end` that have this id, until f returns true.
  template <typename F>
  void for_each_number(std::uint32_t id, Sequence lowest, Sequence end, const F& f) const;

  // ---- changes

  /// The run begins at this place, with the number kRunFirst.
  void begin(const Place& lowest);
  /// Links have gone to this place. Near the foremost link, the events between are built empty; else a segment begins.
  /// `arrived_end`: one above the last number that came. `stride`: of the links.
  void open(const Place& lowest, Sequence frontier, Sequence arrived_end, std::uint16_t stride);
  void add_skipped(std::uint64_t events) { skipped_.fetch_add(events, std::memory_order_relaxed); }

 private:
  Place resolve(const Place& from, std::uint32_t id, std::uint64_t behind, std::optional<std::uint64_t> restart) const;

  const SequencerSettings& settings_;
  Segments segments_;
  Sequence unclear_restart_ = 0;
  std::atomic<bool> begun_{false};
  std::atomic<std::uint64_t> skipped_{0};
};

template <typename F>
void Numbers::for_each_number(std::uint32_t id, Sequence lowest, Sequence end, const F& f) const {
  const IdFormat& format = settings_.format;
  for (std::size_t i = segments_.find(lowest); i < segments_.size() && segments_[i].first < end; ++i) {
    const Segment& segment = segments_[i];
    const Sequence from = std::max(lowest, segment.first);
    const Sequence to = std::min(end, segment.end);
    if (from >= to || (format.has_ecr() && (segment.resets & 0xff) != id >> 24)) continue;
    const std::uint64_t ahead = (id - static_cast<std::uint64_t>(from - segment.base)) & format.low_mask();
    for (Sequence number = from + ahead; number < to; number += format.period()) {
      if (f(number)) return;
    }
  }
}

}  // namespace rodeo::readout
