// Selects events by status, stream, trigger type and L1 id, from the header alone.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/full_event.h"
#include "rodeo/ids.h"

namespace rodeo::formats {

/// The result for an event: kept, or the first condition that it does not meet.
enum class FilterVerdict : std::uint8_t { kept, other_status, other_stream, other_trigger_type, other_l1id, count };

/// All conditions must hold; a condition that is not set always holds.
struct EventFilter {
  enum class Status : std::uint8_t { any, good, flagged };

  Status status = Status::any;         ///< good: no bit is set; flagged: some bit is set
  std::uint32_t status_bits = 0;       ///< if not 0: at least one of these bits must also be set
  std::set<std::string> streams = {};  ///< "physics_Main": the event must have a tag of one of these
  std::set<std::uint32_t> trigger_types = {};
  std::optional<std::pair<L1Id, L1Id>> l1ids =
      {};  ///< extended L1 ids, both ends included; the first may be larger, if the ids wrapped

  FilterVerdict judge(const FullEventView& event) const;
};

/// The streams of an event as "type_name", in the order of its tags: "physics_Main".
std::vector<std::string> streams_of(const FullEventView& event);

}  // namespace rodeo::formats
