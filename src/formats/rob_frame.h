// ROB around one fragment without copying its data: the bytes before and after the fragment's parts (docs/formats/event.md).
//
//   head: ROB header | ROD header (| ROD status)     parts of the fragment     tail: (ROD status |) ROD trailer (| ROB checksum)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/event_format.h"
#include "rodeo/fragment.h"

namespace rodeo::formats {

/// What is the same for all ROBs of a run.
struct RobFrame {
  std::uint32_t run_number = 0;
  ChecksumType checksum = ChecksumType::none;  ///< in the header; who wants one appends it himself
  StatusPosition status_position = StatusPosition::before_data;
  std::uint16_t rod_minor_version = 0;
  std::uint32_t detector_event_type = 0;
};

inline constexpr std::size_t kRobHeaderWords = kGenericHeaderWords + 1;  ///< as Rodeo writes it, with one status word

/// Status words of the fragment's ROD.
std::size_t rod_status_words(const Fragment& fragment);

/// Words of its ROD, data included.
std::size_t rod_words(const Fragment& fragment, std::size_t data_bytes);

/// Append to `out`. The fragment's parts, which have `data_bytes` in all, stand between head and tail.
void append_rob_head(std::vector<std::byte>& out, const RobFrame& frame, const Fragment& fragment, std::size_t data_bytes);
void append_rob_tail(std::vector<std::byte>& out, const RobFrame& frame, const Fragment& fragment, std::size_t data_bytes);

/// A whole ROB, of 21 words, that stands for one that is not there: no data, and `status` in ROB and ROD.
void append_absent_rob(std::vector<std::byte>& out, const RobFrame& frame, SourceId source_id, L1Id l1id,
                       std::uint32_t status);

}  // namespace rodeo::formats
