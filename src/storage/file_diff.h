// The differences of two event files: in their records, in the list of events, and inside events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "formats/event_diff.h"
#include "rodeo/ids.h"
#include "storage/progress.h"

namespace rodeo::storage {

/// One difference of two files.
struct FileDifference {
  std::optional<L1Id> l1id;  ///< none: a difference of the records, or of an event without readable id
  formats::EventDifference what;
  /// Number and offset of the event in each file; empty if the file lacks the event.
  std::optional<std::uint32_t> left_number = {};
  std::optional<std::uint32_t> right_number = {};
  std::uint64_t left_offset = 0;
  std::uint64_t right_offset = 0;
};

struct DiffReport {
  std::uint64_t left_events = 0;
  std::uint64_t right_events = 0;
  std::uint64_t same_events = 0;  ///< pairs without difference
  std::uint64_t different_events = 0;
  std::uint64_t only_left = 0;
  std::uint64_t only_right = 0;
  std::uint64_t differences = 0;

  bool same() const { return differences == 0; }
};

struct FileDiffSettings {
  std::size_t window = 1000;  ///< events that may be out of order
  formats::DiffOptions events = {};
};

/// Pairs events by L1 id (equal ids by their first ROB) and compares each pair. Reads both files in parallel, and also
/// damaged files: an unreadable rest is a difference. GUID, dates, checksums and name differ in every file and do not count.
/// Errors of MappedFile and no_event_file(), data.header, data.order.
Result<DiffReport> diff_files(const std::string& left, const std::string& right, const FileDiffSettings& settings,
                              const Progress& progress, const std::function<void(const FileDifference&)>& found);

}  // namespace rodeo::storage
