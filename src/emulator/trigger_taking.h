// Decides which triggers a card takes, from its start to an end after the accepted triggers; measures the time for the end.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "trigger/source.h"

namespace rodeo::emulator {

/// Callers must take turns: one thread, or a mutex.
class TriggerTaking {
 public:
  enum class State : std::uint8_t {
    none,      ///< takes no triggers; data under way continue
    triggers,  ///< takes all accepted triggers
    last,      ///< takes only triggers accepted before the card was switched off: other cards have them, too
  };
  /// The state that the host wants, according to the registers.
  enum class Wanted : std::uint8_t { nothing, data, pause, end };

  explicit TriggerTaking(trigger::TriggerSource& source) : source_(source) {}

  State state() const { return state_; }
  bool any() const { return state_ != State::none; }
  /// Call once a turn, before taking triggers. True: triggers are held everywhere, so a look that finds no trigger has seen
  /// the last one.
  bool follow(Wanted wanted) {
    static constexpr std::array<std::array<State, 4>, 3> kNext{{
        // The columns are nothing, data, pause, end:
        {State::none, State::triggers, State::none, State::none},
        {State::none, State::triggers, State::last, State::last},
        {State::none, State::triggers, State::last, State::last},
    }};
    state_ = kNext[static_cast<std::size_t>(state_)][static_cast<std::size_t>(wanted)];
    const bool held = state_ == State::last && source_.hold();
    source_.set_ready(any());
    return held;
  }
  /// Says that the last trigger was taken. The source learns this at the next follow(), or by end().
  void has_all() { state_ = State::none; }
  /// Says that triggers need not wait for this card any more.
  void end() {
    state_ = State::none;
    source_.set_ready(false);
  }

 private:
  trigger::TriggerSource& source_;
  State state_ = State::none;
};

/// Time in which this process ran. Between two looks at most ten milliseconds count, because a stopped process uses no time.
class OwnTime {
 public:
  void check(std::uint64_t now_ns) {
    ns_ += std::min(now_ns - std::min(now_ns, looked_ns_), kLongestTurnNs);
    looked_ns_ = now_ns;
  }
  void restart() { ns_ = 0; }
  std::uint64_t ns() const { return ns_; }

 private:
  static constexpr std::uint64_t kLongestTurnNs = 10'000'000;
  std::uint64_t ns_ = 0;
  std::uint64_t looked_ns_ = 0;
};

}  // namespace rodeo::emulator
