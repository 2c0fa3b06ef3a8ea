// How long a selection takes that only looks as if it worked: a fixed time, or one drawn for each event, always the same for the same event.
#pragma once

#include <chrono>
#include <cstdint>

#include "rodeo/settings.h"

namespace rodeo::farm {

struct EmulatedTime {
  enum class Shape : std::uint8_t { none, fixed, exponential, log_normal };
  Shape shape = Shape::none;
  std::chrono::nanoseconds mean = std::chrono::milliseconds{10};
  double sigma = 0.5;  ///< of the logarithm, of log_normal
  bool busy = false;   ///< keeps a core busy for that time, instead of sleeping
  std::uint64_t seed = 1;

  /// Of one event; a pure function.
  std::chrono::nanoseconds of(std::uint64_t global_id) const;
  /// Takes it.
  void take(std::uint64_t global_id) const;
};

const Settings<EmulatedTime>& emulated_time_settings();

}  // namespace rodeo::farm
