// Numbers of time frames. They depend on the run's phase: the orbit, modulo the frame's length, at which its frames begin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "formats/rdh.h"

namespace rodeo::formats {

/// For one reader of the frames of one run. Frames of one orbit have no phase.
class TimeFrameNumbers {
 public:
  explicit TimeFrameNumbers(std::uint32_t orbits_per_frame) : orbits_(orbits_per_frame) {
    if (orbits_ == 1) phase_ = 0;
  }

  /// The number of the frame of this page, which need not be its first page. The first page that begins a time frame gives
  /// the phase; before that the number is unknown.
  std::optional<std::uint32_t> of(const Rdh& page) {
    const bool begins = page.page_number() == 0 && (page.trigger_type() & rdh_trigger::kTimeFrame) != 0;
    if (!phase_ && begins) phase_ = page.orbit() % orbits_;
    if (!phase_) return std::nullopt;
    return (page.orbit() - *phase_) / orbits_;
  }
  std::optional<std::uint32_t> phase() const { return phase_; }

 private:
  const std::uint32_t orbits_;
  std::optional<std::uint32_t> phase_;
};

}  // namespace rodeo::formats
