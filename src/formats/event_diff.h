// What two events that should be the same do not have in common: header fields, ROBs, and chunks down to the first byte.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "formats/decode_error.h"

namespace rodeo::formats {

/// One difference of two events.
struct EventDifference {
  std::string where;  ///< "event", "ROB 0x00610001", "ROB 0x00610001, link id 0x00540003"
  std::string field;  ///< "BCID", "status", "chunk bytes", "only there"
  std::string left;   ///< what the first has; empty: nothing
  std::string right;
  /// Of the field, in each event, bytes from its start; 0 where it has no place. In a compressed event, as if it were not.
  std::uint64_t left_offset = 0;
  std::uint64_t right_offset = 0;
};

struct DiffOptions {
  bool times = true;  ///< bunch-crossing times must be the same, too
};

/// Calls found() for every difference; returns how many there are. Both events decode, or this is the difference: which does not, and why. ROBs are
/// paired by source id and chunks by link id, in whatever order they lie; how payloads are compressed is no difference.
std::uint64_t diff_events(std::span<const std::byte> left, std::span<const std::byte> right, const DiffOptions& options,
                          const std::function<void(const EventDifference&)>& found);

}  // namespace rodeo::formats
