// The counters of a worker, each declared once.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/counters.h"

namespace rodeo::readout {

/// Reasons why chunks are in no fragment; received = built + their sum.
enum class LostCounter : std::size_t {
  late,
  duplicate,
  out_of_sequence,
  malformed,
  link_removed,
  overflow,
  plugin_threw,
  not_listed,
  given_up,
  count
};

inline constexpr base::CounterInfo kLostInfo[] = {
    {"late", "chunks", "The event was closed (time-out or full window) before the chunk came"},
    {"duplicate", "chunks", "The link had delivered this event already"},
    {"out_of_sequence", "chunks", "The L1 id does not fit the link's sequence: flipped bits, disorder or a lost link"},
    {"malformed", "chunks", "The extractor found no trigger information in the chunk"},
    {"link_removed", "chunks", "The link is removed from the build"},
    {"overflow", "chunks", "The event's slice had no room left, not even for a cut chunk"},
    {"plugin_threw", "chunks", "The extractor of a plug-in threw an exception at the chunk"},
    {"not_listed", "chunks", "The trigger's own list has no event of this L1 id at the link's place"},
    {"stop_limit", "chunks", "The run had to end within stop_limit: the chunk came to the worker after that"},
};
static_assert(std::size(kLostInfo) == static_cast<std::size_t>(LostCounter::count));

/// The other counters of a worker.
enum class WorkerCounter : std::size_t {
  corrupt,
  truncated,
  resynchronised,
  moved,
  removed,
  restored,
  received_bytes,
  taken_bytes,
  cut_bytes,
  count
};

inline constexpr base::CounterInfo kWorkerInfo[] = {
    {"corrupt", "chunks", "Chunks in fragments that failed the integrity check or carry a link error"},
    {"truncated", "chunks", "Chunks in fragments that were cut because their slice had no room"},
    {"resynchronised", "times", "Links that found their place again after a jump or a reset"},
    {"moved", "times",
     "Times that other links or the BCIDs of its chunks showed a link to be in another place than assumed"},
    {"removed", "times", "Links removed from the build"},
    {"restored", "times", "Links restored to the build"},
    {"received_bytes", "bytes", "Bytes of the chunks that the input handed over"},
    {"taken_bytes", "bytes", "Bytes of the chunks in fragments, as received"},
    {"cut_bytes", "bytes", "Bytes cut off chunks in fragments"},
};
static_assert(std::size(kWorkerInfo) == static_cast<std::size_t>(WorkerCounter::count));

using LostCounters = base::CounterBlock<LostCounter>;
using WorkerCounters = base::CounterBlock<WorkerCounter>;

/// Counters of one link: its worker writes them, any thread reads.
struct LinkCounters {
  base::Gauge<std::uint64_t> chunks;
  base::Gauge<std::uint64_t> missing;   // chunks missing in FULL mode; in GBT mode the assembler counts them
  base::Gauge<std::uint64_t> left_out;  // events left out, likewise only in FULL mode
  base::Gauge<std::uint64_t> bad;
  base::Gauge<std::uint64_t> doubtful;  // chunks flagged because the link's place was not proven
  base::Gauge<std::uint64_t> moved;     // number of times that the link was moved
  base::Gauge<bool> out_of_step;        // BCIDs of the link agree with no place
  // Set if out of step: number by which all BCIDs are too large; 0: it is not constant.
  base::Gauge<std::uint16_t> bcid_offset;
  base::Gauge<bool> removed;
};

}  // namespace rodeo::readout
