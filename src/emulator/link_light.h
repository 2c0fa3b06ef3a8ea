// The light at a link of an emulated card.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "emulator/fault.h"

namespace rodeo::emulator {

struct LinkLight {
  bool up = true;
  std::uint64_t up_at_ns = 0;  // time at which the light comes back by itself; 0: never

  /// Applies the faults link_down and link_up.
  void apply(const Fault& fault) {
    up = fault.kind == FaultKind::link_up;
    up_at_ns =
        !up && fault.duration.count() > 0 ? base::steady_now_ns() + static_cast<std::uint64_t>(fault.duration.count()) : 0;
  }
  /// True if the link must come back now; the call switches it on.
  bool comes_up(std::uint64_t now_ns) {
    if (up_at_ns == 0 || now_ns < up_at_ns) return false;
    *this = {};
    return true;
  }
};

}  // namespace rodeo::emulator
