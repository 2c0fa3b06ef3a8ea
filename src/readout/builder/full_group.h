// One group of links in turn, in FULL mode: its events up to now, which numbers are events, and the chunks that arrived out
// of turn.
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

/// Only its worker's thread uses it, except `built`, `first_event` and the sequencer's skipped().
class FullGroup {
 public:
  /// `positions`: the positions of the group's links among the worker's links.
  FullGroup(std::uint32_t group_number, std::vector<std::size_t> positions, const Sequencer::Settings& settings);

  bool listed() const { return sequencer.settings().listed; }
  /// The oldest event that is open, or 0 before the first.
  Sequence oldest() const { return begun ? events.oldest() : 0; }

  /// The segment of an event; nearly always the result of the previous call.
  const Segment& segment_of(Sequence sequence);
  /// The entry of an event in the trigger's own list.
  TriggerEntries::Entry entry_of(Sequence sequence) const;

  /// Notes that a chunk of this event has arrived.
  void add_event(Sequence sequence);
  /// An event without chunks exists if the list has it or, without a list, if a later event of its segment has arrived.
  bool is_event(Sequence sequence) const;

  /// The first number that some active link has not passed yet.
  Sequence passed_by_all() const;

  /// Keeps a chunk of another link's turn, and its page, until that link has passed the event. False: the event has a stray
  /// already, or there is no room.
  bool keep_stray(Sequence sequence, const ChunkView& chunk);
  std::optional<ChunkView> take_stray(Sequence sequence);
  std::size_t strays() const { return strays_.size(); }
  /// Takes the newest stray; there must be at least one. Its event is then a gap.
  ChunkView last_stray();

  const std::uint32_t number;
  const std::vector<std::size_t> members;
  EventSet events;
  Sequencer sequencer;
  Turns turns;
  std::unique_ptr<LinkSequence[]> links;
  std::vector<std::uint32_t> link_ids;  ///< link ids of the group's links; the owner fills the list
  bool begun = false;
  std::uint64_t version = 0;      ///< version of the sequencer at the last look at waiting chunks
  std::uint64_t rejudged_at = 0;  ///< event clock at that look
  Sequence gap_at = 0;            ///< the oldest gap at the last look at the clock
  Sequence gap_head = 0;          ///< the newest event at that look
  std::uint64_t gap_since = 0;    ///< event clock at which gap_at became the oldest gap
  Sequence list_end = 0;          ///< end of the list at that look
  std::uint64_t listed_at = 0;
  base::Gauge<std::uint64_t> built;
  std::atomic<std::uint64_t> first_event{~std::uint64_t{0}};  ///< global id of the first event

 private:
  /// The events of one segment. Numbers beyond its last chunk are not events.
  struct Stretch {
    Sequence base = 0;
    Sequence first = 0;
    Sequence last = 0;
  };

  std::vector<std::pair<Sequence, ChunkView>> strays_;  // bounded list of strays
  std::array<Stretch, 4> stretches_{};                  // the last segments, newest first
  Segment segment_{};                                   // segment of the last segment_of(), valid for `segment_version_`
  std::uint64_t segment_version_ = 0;
};

}  // namespace rodeo::readout
