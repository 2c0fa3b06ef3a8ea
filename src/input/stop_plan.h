// The place where a played recording can end in order. Links are recorded in pieces, so at any byte of the recording the
// links have reached different events.
#pragma once

#include <cstdint>
#include <optional>

#include "input/recording.h"

namespace rodeo::input {

struct StopPlan {
  std::uint64_t begin = 0;               ///< bytes before the last pass; last_id is an event of this pass
  std::uint64_t end_at = 0;              ///< place in bytes, over all passes, at which streams end at the latest
  std::optional<std::uint32_t> last_id;  ///< L1 id of the last event to deliver; none: deliver all up to end_at
};

/// The plan for streams that have not passed `reached` (bytes over all passes, whole blocks). The last event is the latest
/// one of which some link has delivered a chunk; its other chunks are in the next blocks. The plan does not wait for a link
/// that is silent for long. Reads up to 32 MiB of the recording.
StopPlan plan_stop(const Recording& recording, std::uint64_t reached);

/// The L1 id of a chunk of the trigger's own list (TTC packets), or of data; none if the chunk has none.
std::optional<std::uint32_t> recorded_id(const Recording& recording, bool trigger_list, std::span<const std::byte> chunk);

}  // namespace rodeo::input
