// How long to wait for what a card does: counts only while the card answers and this process runs.
#pragma once

#include <algorithm>
#include <chrono>

namespace rodeo::card {

/// For a loop that looks at a register until it says something. A stopped emulator answers nothing, and a stopped process does not look; neither uses up
/// the patience: two looks count as no more than a tenth of it, however far they are apart.
class CardWait {
 public:
  using Clock = std::chrono::steady_clock;

  explicit CardWait(std::chrono::nanoseconds patience, Clock::time_point now = Clock::now())
      : left_(patience), step_(patience / kLooks), last_(now) {}

  /// After a look that found nothing: true if it was the last.
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
