// Which triggers a card takes, from its begin to an end behind those that were accepted; and the time that it has for that.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "trigger/source.h"

namespace rodeo::emulator {

/// Callers take turns: one thread, or a mutex.
class TriggerTaking {
 public:
  enum class State : std::uint8_t {
    none,      ///< what is under way goes on
    triggers,  ///< all that are accepted
    last,      ///< those that were accepted before the card was switched off, which other cards have too
  };
  /// What the host wants, by its registers.
  enum class Wanted : std::uint8_t { nothing, data, pause, end };

  explicit TriggerTaking(trigger::TriggerSource& source) : source_(source) {}

  State state() const { return state_; }
  bool any() const { return state_ != State::none; }
  /// Once a turn, before triggers are taken. True: triggers are held everywhere, so that one look that finds none has seen the last.
  bool follow(Wanted wanted) {
    static constexpr std::array<std::array<State, 4>, 3> kNext{{
        // nothing, data, pause, end
        {State::none, State::triggers, State::none, State::none},
        {State::none, State::triggers, State::last, State::last},
        {State::none, State::triggers, State::last, State::last},
    }};
    state_ = kNext[static_cast<std::size_t>(state_)][static_cast<std::size_t>(wanted)];
    const bool held = state_ == State::last && source_.hold();
    source_.set_ready(any());
    return held;
  }
  /// The last one was taken; this is told with the next turn, or by end().
  void has_all() { state_ = State::none; }
  /// No trigger waits for this card any more.
  void end() {
    state_ = State::none;
    source_.set_ready(false);
  }

 private:
  trigger::TriggerSource& source_;
  State state_ = State::none;
};

/// Time that this process ran. Of the time between two looks ten milliseconds count at most: one that was stopped has not used it.
class OwnTime {
 public:
  void look(std::uint64_t now_ns) {
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
