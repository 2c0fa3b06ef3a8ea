// The unit of the ids of a readout: events of a trigger, or time frames.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

namespace rodeo::formats {

struct Numbering {
  /// 0: ids count events of a trigger. Else they count time frames of this many orbits; 1: heartbeat frames
  std::uint32_t orbits = 0;
  std::optional<std::uint32_t> phase = {};  ///< the orbit, modulo `orbits`, at which time frames begin, once it is known
  bool operator==(const Numbering&) const = default;

  /// False: equal ids belong to different data.
  bool fits(const Numbering& other) const {
    return orbits == other.orbits && (!phase || !other.phase || *phase == *other.phase);
  }
  std::string text() const {
    if (orbits == 0) return "events of a trigger";
    if (orbits == 1) return "heartbeat frames";
    return fmt::format("time frames of {} orbits{}", orbits,
                       phase ? fmt::format(" from orbit {} on", *phase) : std::string());
  }
};

}  // namespace rodeo::formats
