// Where a recording that is being played comes to its end in good order: links are recorded in pieces, so at any byte of the recording
// they stand at different events.
#pragma once

#include <cstdint>
#include <optional>

#include "input/recording.h"

namespace rodeo::input {

struct StopPlan {
  std::uint64_t begin = 0;               ///< bytes before the last pass, to which last_id applies
  std::uint64_t end_at = 0;              ///< bytes, over all passes, that streams walk at most
  std::optional<std::uint32_t> last_id;  ///< L1 id of the last event that is delivered; none: everything up to end_at is
};

/// The plan for streams that have not gone beyond `reached` (bytes over all passes, whole blocks): the last event of which any link has
/// delivered a chunk by then is the last, and its other chunks are within the next blocks. A link that is silent for long is not waited for.
/// Reads up to 32 MiB of the recording.
StopPlan plan_stop(const Recording& recording, std::uint64_t reached);

/// The L1 id of a chunk: of the trigger's own list (TTC packets), or of data. None if it carries none.
std::optional<std::uint32_t> recorded_id(const Recording& recording, bool trigger_list, std::span<const std::byte> chunk);

}  // namespace rodeo::input
