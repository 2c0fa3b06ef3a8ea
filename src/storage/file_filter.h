// Writes some events of event files to new files: selected by conditions, and split by stream, number or size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "formats/event_filter.h"
#include "rodeo/consumer.h"
#include "storage/derived_files.h"
#include "storage/event_file_walk.h"
#include "storage/progress.h"

namespace rodeo::storage {

/// Each event is `kept`, or counted for the first condition that it does not meet.
enum class FilterCounter : std::uint8_t {
  events_in,
  kept,
  other_status,
  other_stream,
  other_trigger_type,
  other_l1id,
  refused,
  timed_out,
  damaged_events,
  events_out,
  count
};

inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(FilterCounter::count)> kFilterCounters = {{
    {"events_in", "events", "Events that were read."},
    {"kept", "events", "Events that meet every condition."},
    {"other_status", "events", "Events of another status. Not written."},
    {"other_stream", "events", "Events of other streams. Not written."},
    {"other_trigger_type", "events", "Events of another trigger type. Not written."},
    {"other_l1id", "events", "Events whose L1 id is outside the range. Not written."},
    {"refused", "events", "Events that the Python function rejected. Not written."},
    {"timed_out", "events", "Events for which the Python function exceeded the time limit (--hang). Not written."},
    {"damaged_events", "events", "Events that do not decode, or whose checksum does not hold. Not written."},
    {"events_out", "events", "Events written, counted once for each stream if files are split by stream."},
}};

/// The answer of the user's function for an event.
enum class Wanted : std::uint8_t { no, yes, timed_out };

struct FilterSettings {
  std::vector<std::string> files;  ///< the files, in this order
  formats::EventFilter filter = {};
  DerivedTarget output = {};
  bool by_stream = false;  ///< separate files for each stream: <name>.<stream>._0001.data
  std::uint64_t max_bytes = 0;
  std::uint32_t max_events = 0;
  std::string says = {};  ///< the conditions, as text for the new files
  /// A further condition. It is called for each event, in order, also for damaged events. May be empty.
  std::function<Result<Wanted>(const WalkedEvent&)> wants = {};
};

struct FilterReport {
  std::array<std::uint64_t, static_cast<std::size_t>(FilterCounter::count)> counts = {};
  std::vector<std::string> named;  ///< descriptions of the first damaged events
  std::vector<FragmentConsumer::File> files;

  std::uint64_t count(FilterCounter counter) const { return counts[static_cast<std::size_t>(counter)]; }
};

/// Reads files of one run once, from start to end; memory use does not depend on their size. After any failure no new file
/// is left. Errors of by_writer(), EventFileWalk, DerivedFiles and `wants`; data.interrupted, data.streams (too many to
/// split by).
Result<FilterReport> filter_files(const FilterSettings& settings, const Progress& progress,
                                  const std::function<bool()>& stop);

}  // namespace rodeo::storage
