// The emulated time of a selection: fixed, or drawn for each event. The same event always gets the same time.
#pragma once

#include <chrono>
#include <cstdint>

#include "rodeo/settings.h"

namespace rodeo::farm {

struct EmulatedTime {
  enum class Shape : std::uint8_t { none, fixed, exponential, log_normal };
  Shape shape = Shape::none;
  std::chrono::nanoseconds mean = std::chrono::milliseconds{10};
  double sigma = 0.5;  ///< Of the logarithm, for log_normal.
  bool busy = false;   ///< Keeps a core busy for that time, instead of sleeping.
  std::uint64_t seed = 1;

  /// The time of one event; a pure function.
  std::chrono::nanoseconds time_of(std::uint64_t global_id) const;
  /// Sleeps, or keeps a core busy, for the time of the event.
  void spend(std::uint64_t global_id) const;
};

const Settings<EmulatedTime>& emulated_time_settings();

}  // namespace rodeo::farm
