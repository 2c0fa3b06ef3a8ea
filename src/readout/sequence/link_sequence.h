// What a worker knows of one link: all that an undisturbed run touches.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/spsc_ring.h"
#include "readout/sequence/id_format.h"
#include "readout/sequence/pace.h"
#include "readout/sequence/segments.h"

namespace rodeo::readout {

/// The worker's thread advances it alone below `end`; else the sequencer writes it. Peers read the atomics at any time, and
/// the fields of the segment during their turn at the sequencer: these change only there.
struct alignas(base::kCacheLine) LinkSequence {
  static constexpr std::uint64_t kHistory = 64;

  std::atomic<Sequence> next{0};       ///< the expected number
  Sequence end = 0;                    ///< numbers below are taken without asking the sequencer; 0: none
  std::uint64_t history = 0;           ///< bit k: the link delivered the event next - 1 - k
  Sequence base = 0;                   ///< number of index 0 of its segment
  std::uint64_t header = 0;            ///< of the chunk records that its owner writes
  std::atomic<std::uint64_t> seen{0};  ///< event clock of its last chunk
  std::uint32_t expected = 0;          ///< id of `next`
  std::uint32_t resets = 0;            ///< of its segment
  std::uint32_t rounds = 0;            ///< of its segment, for global ids
  std::uint16_t stride = 1;            ///< events from one chunk of the link to the next
  std::atomic<bool> here{false};       ///< `next` is valid
  std::atomic<bool> removed{false};
  bool lost = false;      ///< after a silence `expected` may be the id of another round; the sequencer finds its place anew
  bool doubtful = false;  ///< its place was found anew, and is not proven so far
  Sequence reader_head = 0;        ///< how far its reader's links had come when it last brought something; 0: it never has
  std::uint64_t block_events = 0;  ///< events of the block that is looked at
  Sequence in_question = 0;        ///< it was silent for long when it was here; 0: never
  Pace* pace = nullptr;            ///< of its reader

  Sequence position() const { return next.load(std::memory_order_relaxed); }
  Place place() const { return {resets, static_cast<std::int64_t>(position() - base)}; }

  /// Call it before a block of its chunks, which may span this many events. Notes that the link is not silent, and whether
  /// its silence cost it its place. A block that brings the link to where the others are keeps the place, if it begins with
  /// the expected id.
  void begin_block(std::uint64_t events) {
    const Sequence head = pace->head();
    if (head > reader_head + pace->limit() && reader_head != 0) [[unlikely]] {
      if (head <= position() + events + pace->quarter()) {
        in_question = position();
      } else {
        lost = true;
        end = 0;
      }
    }
    reader_head = head;
    block_events = events;
  }
  /// Call it after the block, before which the link was at `before`.
  void end_block(Sequence before) {
    const Sequence now = position();
    if (now == before || doubtful) return;
    pace->measure_skew(reader_head, now);
    pace->advance_own(now, base);
    reader_head = std::max(reader_head, now);
  }
  /// True if its place is lost unless the next chunk has the expected id.
  bool is_in_question() const { return in_question != 0 && in_question == position(); }

  /// True if so many of its events are closed that its id may be of a later round.
  bool has_lapsed(Sequence oldest, const IdFormat& format) const {
    return position() < oldest && oldest - position() >= format.period() / 2;
  }

  /// True if it has lately left out no event.
  bool is_dense() const { return (history & 0xf) == 0xf; }

  /// n chunks of consecutive events were taken.
  void advance(std::uint32_t n, const IdFormat& format) {
    next.store(position() + n, std::memory_order_relaxed);
    expected = format.advance(expected, n);
    history = n >= 64 ? ~std::uint64_t{0} : history << n | ((std::uint64_t{1} << n) - 1);
  }
};

}  // namespace rodeo::readout
