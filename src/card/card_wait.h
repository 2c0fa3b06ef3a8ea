// A time-out for an action of a card. Time counts only while the card answers and this process runs.
#pragma once

#include <algorithm>
#include <chrono>

namespace rodeo::card {

/// For a loop that polls a register. A stop of the emulator or of this process must not use up the patience: the time
/// between two polls counts as a tenth of the patience at most, however long it was.
class CardWait {
 public:
  using Clock = std::chrono::steady_clock;

  explicit CardWait(std::chrono::nanoseconds patience, Clock::time_point now = Clock::now())
      : left_(patience), step_(patience / kLooks), last_(now) {}

  /// Call this after each poll without a result: true if the time is over.
  bool over(Clock::time_point now = Clock::now()) {
    left_ -= std::min<std::chrono::nanoseconds>(now - last_, step_);
    last_ = now;
    return left_ <= std::chrono::nanoseconds{0};
  }

 private:
  static constexpr int kLooks = 10;

  std::chrono::nanoseconds left_;
  std::chrono::nanoseconds step_;
  Clock::time_point last_;
};

}  // namespace rodeo::card
