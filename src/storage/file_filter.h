// Some events of event files in new ones: chosen by conditions, and split by stream, number or size.
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

/// Every event that is read is `kept`, or in the counter of the first condition that it does not meet.
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
    {"other_status", "events", "Events of another status. Not in."},
    {"other_stream", "events", "Events of other streams. Not in."},
    {"other_trigger_type", "events", "Events of another trigger type. Not in."},
    {"other_l1id", "events", "Events whose L1 id is outside the range. Not in."},
    {"refused", "events", "Events that the Python function did not want. Not in."},
    {"timed_out", "events", "Events at which the Python function took longer than it may (--hang). Not in."},
    {"damaged_events", "events", "Events that do not decode, or whose checksum does not hold. Not in."},
    {"events_out", "events",
     "Events that were written; those of several streams are in the files of each, if files are split by stream."},
}};

/// What a function of the user's says of an event.
enum class Wanted : std::uint8_t { no, yes, timed_out };

struct FilterSettings {
  std::vector<std::string> files;  ///< in this order
  formats::EventFilter filter = {};
  DerivedTarget output = {};
  bool by_stream = false;  ///< files of their own for each stream: <name>.<stream>._0001.data
  std::uint64_t max_bytes = 0;
  std::uint32_t max_events = 0;
  std::string says = {};  ///< what the new files say of the conditions
  /// Asked about each event that is read, in order, also about one that is damaged: what else it must be. May be empty.
  std::function<Result<Wanted>(const WalkedEvent&)> wants = {};
};

struct FilterReport {
  std::array<std::uint64_t, static_cast<std::size_t>(FilterCounter::count)> counts = {};
  std::vector<std::string> named;  ///< the first damaged events
  std::vector<FragmentConsumer::File> files;

  std::uint64_t count(FilterCounter counter) const { return counts[static_cast<std::size_t>(counter)]; }
};

/// Files of one run, read once from start to end; memory does not grow with them. Whatever fails, no new file is left. Errors: of
/// by_writer(), EventFileWalk, DerivedFiles and `wants`; data.interrupted, data.streams (too many to split by).
Result<FilterReport> filter_files(const FilterSettings& settings, const Progress& progress,
                                  const std::function<bool()>& stop);

}  // namespace rodeo::storage
