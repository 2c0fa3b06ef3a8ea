// A ROB around one fragment, without copying its data: the bytes before and after the fragment's parts
// (docs/reference/formats/event.md).
//
//   head: ROB header | ROD header (| ROD status)     parts of the fragment
//   tail: (ROD status |) ROD trailer (| ROB checksum)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/event_format.h"
#include "rodeo/fragment.h"

namespace rodeo::formats {

/// The settings common to all ROBs of a run.
struct RobFrame {
  std::uint32_t run_number = 0;
  ChecksumType checksum = ChecksumType::none;  ///< written to the header; the caller appends the checksum itself
  StatusPosition status_position = StatusPosition::before_data;
  std::uint16_t rod_minor_version = 0;
  std::uint32_t detector_event_type = 0;
};

/// Words of a header with one status word, as Rodeo writes it.
inline constexpr std::size_t kRobHeaderWords = kGenericHeaderWords + 1;

/// Number of status words of the fragment's ROD.
std::size_t rod_status_words(const Fragment& fragment);

/// Size of the fragment's ROD in words, data included.
std::size_t rod_words(const Fragment& fragment, std::size_t data_bytes);

/// Appends the head to `out`. The caller puts the fragment's parts, `data_bytes` in all, between head and tail.
void append_rob_head(std::vector<std::byte>& out, const RobFrame& frame, const Fragment& fragment, L1Id l1id,
                     std::size_t data_bytes);
void append_rob_tail(std::vector<std::byte>& out, const RobFrame& frame, const Fragment& fragment, std::size_t data_bytes);

/// Appends a ROB of 21 words in place of an absent one: no data, and `status` in ROB and ROD.
void append_absent_rob(std::vector<std::byte>& out, const RobFrame& frame, SourceId source_id, L1Id l1id,
                       std::uint32_t status);

}  // namespace rodeo::formats
