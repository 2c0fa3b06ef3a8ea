// What two event files do not have in common: records, which events, and where in them.
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
  std::optional<L1Id> l1id;  ///< none: of the records of the file, or of an event that has no readable id
  formats::EventDifference what;
  /// Of the event in each file: its number, and where it begins; nothing where there is none.
  std::optional<std::uint32_t> left_number = {};
  std::optional<std::uint32_t> right_number = {};
  std::uint64_t left_offset = 0;
  std::uint64_t right_offset = 0;
};

struct DiffReport {
  std::uint64_t left_events = 0;
  std::uint64_t right_events = 0;
  std::uint64_t same_events = 0;  ///< pairs
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

/// Pairs events by L1 id (several of one id by their first ROB) and compares each pair; the files are read side by side, whatever is wrong with
/// them: where one cannot be read on is a difference. What tells every file from every other (GUID, dates, checksums, name) is none. Errors: of
/// MappedFile, of no_event_file(), data.header, data.order.
Result<DiffReport> diff_files(const std::string& left, const std::string& right, const FileDiffSettings& settings,
                              const Progress& progress, const std::function<void(const FileDifference&)>& found);

}  // namespace rodeo::storage
