// Merges one run's events from the files of several writers: fragments of an event from different files become one full
// event.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "formats/findings.h"
#include "rodeo/consumer.h"
#include "storage/derived_files.h"
#include "storage/progress.h"
#include "storage/writer_files.h"

namespace rodeo::storage {

/// Every event read is part of one written event, or counted by one of the counters marked "Not written".
enum class MergeCounter : std::uint8_t {
  events_in,
  events_out,
  merged_in,
  duplicate_events,
  contradicting_events,
  damaged_events,
  complete_events,
  incomplete_events,
  duplicate_robs,
  contradicting_robs,
  missing_robs,
  bcid_differs,
  trigger_type_differs,
  count
};

inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(MergeCounter::count)> kMergeCounters = {{
    {"events_in", "events", "Events that were read."},
    {"events_out", "events", "Events that were written."},
    {"merged_in", "events", "Events that are, whole or in part, in a written event."},
    {"duplicate_events", "events",
     "Events without new data: each of their ROBs existed already, byte for byte. Not written."},
    {"contradicting_events", "events", "Events whose ROBs all existed already, some with other bytes. Not written."},
    {"damaged_events", "events", "Events that do not decode, or whose checksum does not hold. Not written."},
    {"complete_events", "events", "Written events that have every ROB."},
    {"incomplete_events", "events", "Written events that lack some ROB; they are flagged and list the missing ROBs."},
    {"duplicate_robs", "fragments", "Fragments that existed already, byte for byte."},
    {"contradicting_robs", "fragments", "Different fragments of a ROB in one event; only the first is kept."},
    {"missing_robs", "fragments", "Fragments that partial events lack."},
    {"bcid_differs", "events", "Written events whose fragments do not agree on the BCID; they are flagged."},
    {"trigger_type_differs", "events", "Written events whose fragments do not agree on the trigger type; they are flagged."},
}};

struct MergeSettings {
  std::vector<std::string> files;
  DerivedTarget output = {};
  std::size_t window = 1000;    ///< events of a writer that may be out of order
  std::uint64_t max_bytes = 0;  ///< limit for each new file; 0: no limit
  std::uint32_t max_events = 0;
};

struct MergeReport {
  std::vector<WriterFiles> writers;
  std::array<std::uint64_t, static_cast<std::size_t>(MergeCounter::count)> counts = {};
  std::uint64_t named_total = 0;
  std::vector<std::string> named;  ///< descriptions of the first events that could not be written unchanged, with the reason
  std::size_t most_held = 0;       ///< highest number of events held at a time
  bool by_global_id = false;       ///< false: by L1 id and order, because some file does not promise unique global ids
  std::vector<FragmentConsumer::File> files;

  std::uint64_t count(MergeCounter counter) const { return counts[static_cast<std::size_t>(counter)]; }
  bool adds_up() const {
    return count(MergeCounter::events_in) == count(MergeCounter::merged_in) + count(MergeCounter::duplicate_events) +
                                                 count(MergeCounter::contradicting_events) +
                                                 count(MergeCounter::damaged_events);
  }
};

/// Reads the records of all files, then all events once, in order. Memory use does not depend on file size: at most `window`
/// events of each writer are held, in place in the mapped files. `begin` gets the number of bytes to read; `stop` is called
/// now and then. After any failure, no new file is left. Errors of by_writer(), EventFileWalk and DerivedFiles; data.order
/// (an event is further behind than the window), data.interrupted.
Result<MergeReport> merge_files(const MergeSettings& settings, const std::function<void(std::uint64_t)>& begin,
                                const Progress& progress, const std::function<bool()>& stop);

}  // namespace rodeo::storage
