// One event out of several that hold its fragments, as the files of several readouts do (docs/data-files.md, "One event from several files").
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

/// An event with one or some of the ROBs.
struct EventPiece {
  FullEventView event;
  WordView robs;  ///< its payload, decompressed; all of it decodes
};

/// What became of the pieces of one event.
struct MergedPieces {
  std::span<const std::byte> bytes;          ///< the event; valid until the next
  std::vector<std::size_t> repeated;         ///< pieces of which every ROB was there already, with the same bytes
  std::vector<std::size_t> contradicting;    ///< likewise, some of them with other bytes
  std::vector<SourceId> repeated_robs;       ///< ROBs that were there already, with the same bytes
  std::vector<SourceId> contradicting_robs;  ///< with others: the first was kept
  std::vector<SourceId> missing;             ///< expected, and in no piece
  bool bcid_differs = false;                 ///< pieces do not agree on the BCID
  bool trigger_type_differs = false;         ///< or on the trigger type
};

/// Puts events together. Header fields are those of the first piece that is no dummy, the time is the earliest; status bits are or-ed, stream tags joined,
/// ROBs sorted by their source ids. Where pieces disagree on BCID or trigger type, the event has the bit of a BCID mismatch. Missing ROBs are flagged
/// (kRobsMissing) and listed. An event of one piece of which nothing is missing stays as it is, byte for byte. One thread.
class EventMerger {
 public:
  /// ROBs that every event should have; may be empty.
  explicit EventMerger(std::set<SourceId> expected) : expected_(std::move(expected)) {}

  /// `pieces` are of one L1 id; at least one. `whole`: nothing else is known to be missing.
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
  std::vector<Rob> robs_;  // of the event at hand
  std::vector<std::byte> bytes_;
};

/// ROBs that the status words of a merged event name as missing; empty if they name none.
std::vector<SourceId> missing_robs(WordView status);

}  // namespace rodeo::formats
