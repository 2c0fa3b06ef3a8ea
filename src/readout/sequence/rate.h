// How fast the links of one reader bring events, and how many they have missed while they were silent.
#pragma once

#include <cstdint>

#include "rodeo/ids.h"

namespace rodeo::readout {

/// For one reader, in its thread. All clocks are the input's.
class Rate {
 public:
  /// By `clock` the links have come to `number`.
  void update(std::uint64_t clock, Sequence number) {
    constexpr double kFades = 63. / 64;
    if (number_ != 0 && clock > clock_) {
      events_ = kFades * events_ + static_cast<double>(number - number_);
      time_ = kFades * time_ + static_cast<double>(clock - clock_);
    }
    clock_ = clock;
    number_ = number;
  }

  /// Events that the recent rate gives for the time since the links last brought something.
  std::uint64_t missed_events(std::uint64_t clock) const {
    return time_ > 0 && clock > clock_ ? static_cast<std::uint64_t>(events_ / time_ * static_cast<double>(clock - clock_))
                                       : 0;
  }
  std::uint64_t silent_for(std::uint64_t clock) const { return clock > clock_ ? clock - clock_ : 0; }

 private:
  std::uint64_t clock_ = 0;
  Sequence number_ = 0;
  double events_ = 0;
  double time_ = 0;
};

}  // namespace rodeo::readout
