// Compares two events that should be equal: header fields, ROBs, and chunks down to the first different byte.
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
  std::string left;   ///< value in the first event; empty: the event has no value
  std::string right;
  /// Place of the field in each event, in bytes from its start; 0 if it has no place. In a compressed event, counted as if
  /// uncompressed.
  std::uint64_t left_offset = 0;
  std::uint64_t right_offset = 0;
};

struct DiffOptions {
  bool times = true;  ///< bunch-crossing times must be equal, too
};

/// Calls found() for every difference; returns their number. If an event does not decode, this is the only difference, with
/// the reason. ROBs are paired by source id and chunks by link id, in any order; the compression of payloads is not
/// compared.
std::uint64_t diff_events(std::span<const std::byte> left, std::span<const std::byte> right, const DiffOptions& options,
                          const std::function<void(const EventDifference&)>& found);

}  // namespace rodeo::formats
