// Builds one event from several events with its fragments, as in the files of several readouts (docs/how-to/merge-data.md,
// "One event from several files").
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "formats/full_event.h"
#include "formats/words.h"
#include "rodeo/ids.h"

namespace rodeo::formats {

/// An event with some of the ROBs.
struct EventPiece {
  FullEventView event;
  WordView robs;  ///< payload of the event, decompressed; all of it decodes
};

/// The result of merging the pieces of one event.
struct MergedPieces {
  std::span<const std::byte> bytes;          ///< the event; valid until the next merge()
  std::vector<std::size_t> repeated;         ///< pieces whose ROBs all existed already, with the same bytes
  std::vector<std::size_t> contradicting;    ///< pieces whose ROBs all existed already, some of them with other bytes
  std::vector<SourceId> repeated_robs;       ///< ROBs that existed already, with the same bytes
  std::vector<SourceId> contradicting_robs;  ///< ROBs that existed already with other bytes; the first one was kept
  std::vector<SourceId> missing;             ///< ROBs that were expected and are in no piece
  bool bcid_differs = false;                 ///< the pieces disagree on the BCID
  bool trigger_type_differs = false;         ///< the pieces disagree on the trigger type
};

/// Merges events. Header fields come from the first piece that is not a dummy, the time is the earliest; status bits are
/// or-ed, stream tags joined, ROBs sorted by source id. If pieces disagree on BCID or trigger type, the event gets the
/// status bit of a BCID mismatch. Missing ROBs are flagged (kRobsMissing) and listed. A complete event of one piece keeps
/// all its bytes. One thread.
class EventMerger {
 public:
  /// `expected`: ROBs that every event should have; may be empty.
  explicit EventMerger(std::set<SourceId> expected) : expected_(std::move(expected)) {}

  /// `pieces`: events of one L1 id; at least one. `whole`: no other part is known to be missing.
  MergedPieces merge(std::span<const EventPiece> pieces, bool whole = true);

 private:
  struct Rob {
    SourceId source_id;
    WordView words;
  };
  void collect(std::span<const EventPiece> pieces, MergedPieces& merged);
  std::vector<std::uint32_t> status_words(std::span<const EventPiece> pieces, const MergedPieces& merged, bool whole) const;
  void build(std::span<const EventPiece> pieces, const std::vector<std::uint32_t>& status);

  std::set<SourceId> expected_;
  std::vector<Rob> robs_;  // ROBs of the current event
  std::vector<std::byte> bytes_;
};

/// The ROBs that the status words of a merged event list as missing; empty if there are none.
std::vector<SourceId> missing_robs(WordView status);

}  // namespace rodeo::formats
