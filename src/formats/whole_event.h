// The header of an event that was built from the ROBs of many readouts, and the marks of missing ROBs in it
// (docs/reference/formats/event.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/event_format.h"
#include "rodeo/ids.h"

namespace rodeo::formats {

/// In the first status word of an event, in the half that depends on its kind.
namespace event_status {
inline constexpr std::uint32_t kRecovered = 0x800U << 16;  ///< "DCM recovered event": assigned a second time, built only
inline constexpr std::uint32_t kProcessingProblem = 0x1000U << 16;  ///< "HLT processing problem": its selection failed
inline constexpr std::uint32_t kPartial =
    0x80000000;  ///< fragments are missing; ROBs stand for them (kRobLost, fragment_request.h)
}  // namespace event_status

/// First of the HLT info words of an event from a farm; the scan step and flags follow.
inline constexpr std::uint32_t kFarmInfo = 0x52440001;
inline constexpr std::uint32_t kFarmInfoBuildOnly = 1;

struct WholeEventHeader {
  std::uint32_t status = 0;
  std::uint32_t bc_time_s = 0;
  std::uint32_t bc_time_ns = 0;
  std::uint64_t global_id = 0;
  std::uint32_t run_type = 0;
  std::uint32_t run_number = 0;
  std::uint32_t lumi_block = 0;
  std::uint32_t scan_step = 0;
  bool build_only = false;
  L1Id l1id = {};
  std::uint32_t bcid = 0;
  std::uint32_t trigger_type = 0;
  std::vector<std::uint32_t> stream_tags = {};  ///< result of encode_stream_tags()
  /// checksum named in the header; the caller writes its word behind the payload
  ChecksumType checksum = ChecksumType::none;
};

/// Appends the header of an event. The caller appends its ROBs, `rob_bytes` in all.
void append_whole_event_header(std::vector<std::byte>& out, const WholeEventHeader& header, std::size_t rob_bytes);

}  // namespace rodeo::formats
