// One group of links that take turns, in FULL mode: which of its events have come, which are events at all, and what came out of turn.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/counters.h"
#include "readout/builder/waiting_chunks.h"
#include "readout/sequence/sequencer.h"
#include "readout/sequence/turns.h"

namespace rodeo::readout {

/// Its worker's thread alone, but for `built`, `first_event` and the sequencer's skipped().
class FullGroup {
 public:
  /// `members`: positions of its links among the worker's.
  FullGroup(std::uint32_t group_number, std::vector<std::size_t> positions, const Sequencer::Settings& settings);

  bool listed() const { return sequencer.settings().listed; }
  /// The oldest event that is open, or 0 before the first.
  Sequence oldest() const { return begun ? events.oldest() : 0; }

  /// The segment of an event: nearly always that of the event before.
  const Segment& segment_of(Sequence sequence);
  /// What the trigger's own list says of an event.
  TriggerBook::Entry entry_of(Sequence sequence) const;

  /// A chunk of this event has come.
  void note(Sequence sequence);
  /// An event that nobody brings exists if the list has it or, without a list, if a later one of its segment has come.
  bool is_event(Sequence sequence) const;

  /// The first number that some link which is not removed has still to come to.
  Sequence passed_by_all() const;

  /// A chunk of another's turn waits until that link has passed the event, with a reference to its page. False: there is one, or no room.
  bool keep_stray(Sequence sequence, const ChunkView& chunk);
  std::optional<ChunkView> take_stray(Sequence sequence);
  std::size_t strays() const { return strays_.size(); }
  /// The one that strayed last; there must be one. Its event is a gap.
  ChunkView last_stray();

  const std::uint32_t number;
  const std::vector<std::size_t> members;
  EventSet events;
  Sequencer sequencer;
  Turns turns;
  std::unique_ptr<LinkSequence[]> links;
  std::vector<std::uint32_t> link_ids;  ///< of its links; the owner fills it
  bool begun = false;
  std::uint64_t version = 0;    ///< of the sequencer, when what waits was last looked at
  std::uint64_t looked_at = 0;  ///< event clock then
  Sequence gap_at = 0;          ///< the oldest gap when the clock was last looked at
  Sequence gap_head = 0;        ///< what was newest then
  std::uint64_t gap_since = 0;  ///< on the event clock
  Sequence list_end = 0;        ///< end of the list then
  std::uint64_t listed_at = 0;
  base::Gauge<std::uint64_t> built;
  std::atomic<std::uint64_t> first_event{~std::uint64_t{0}};  ///< global id

 private:
  /// A number of events of one segment: what lies beyond the last that came is none.
  struct Stretch {
    Sequence base = 0;
    Sequence first = 0;
    Sequence last = 0;
  };

  std::vector<std::pair<Sequence, ChunkView>> strays_;  // bounded
  std::array<Stretch, 4> stretches_{};                  // the last segments, newest first
  Segment segment_{};                                   // of the last event that was asked for, as of `segment_version_`
  std::uint64_t segment_version_ = 0;
};

}  // namespace rodeo::readout
