// The triggers of a system: the time of each, and the L1 ids of the accepted ones (docs/reference/emulator.md, "Triggers").
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "formats/event_ids.h"

namespace rodeo::formats {

/// Orbits of the LHC: 3564 bunch crossings of 24.95 ns.
inline constexpr double kOrbitNs = 1e9 / 11245.5;

struct TriggerPlanSettings {
  double rate_hz = 0;                      ///< 0: a trigger is always due
  bool random = false;                     ///< exponential spacing (a Poisson process) instead of even spacing
  std::uint64_t seed = 1;                  ///< seed of the random spacing
  std::uint64_t limit = 0;                 ///< accepted triggers; 0: unlimited
  std::uint64_t ecr_triggers = 0;          ///< accepted triggers between event counter resets; 0: no resets
  std::chrono::nanoseconds ecr_period{0};  ///< time between event counter resets; 0: no resets by time
};

/// A pure function of its settings and of the accepted triggers. The caller accepts or refuses each trigger that is due;
/// accepted ones get consecutive L1 ids. The event counter is also reset before its 24 bits overflow. Single-threaded; time
/// is an argument (nanoseconds, any origin).
class TriggerPlan {
 public:
  explicit TriggerPlan(const TriggerPlanSettings& settings);

  /// The first trigger is due at once.
  void start(std::uint64_t now_ns);

  /// The time of the next trigger. Without a rate, a trigger is always due.
  std::uint64_t due_ns() const { return due_ns_; }
  bool paced() const { return period_ns_ > 0; }

  /// True when `limit` triggers were accepted.
  bool exhausted() const { return accepted_ == limit_; }
  std::uint64_t left() const { return limit_ - accepted_; }
  std::uint64_t accepted() const { return accepted_; }
  /// The number of event counter resets before the last accepted trigger.
  std::uint32_t ecrs() const { return ecrs_; }

  struct Accepted {
    L1Id first;  ///< the lower half of the global id
    std::uint32_t count = 0;
  };
  /// Accepts the trigger that is due, at `time_ns` (its due time, or now without a rate); without a rate, up to `most` at
  /// once, but not beyond the next reset.
  Accepted accept(std::uint64_t most, std::uint64_t time_ns) {
    if (l1_ == epoch_ || time_ns >= next_ecr_ns_) reset_event_counter(time_ns);
    const Accepted accepted{payload_id(IdLayout{}.global_id(ecrs_, l1_)),
                            static_cast<std::uint32_t>(std::min<std::uint64_t>(most, epoch_ - l1_))};
    l1_ += accepted.count;
    accepted_ += accepted.count;
    refuse();
    return accepted;
  }
  L1Id accept(std::uint64_t time_ns) { return accept(1, time_ns).first; }

  /// Refuses the trigger that is due.
  void refuse() {
    if (paced()) schedule_next();
  }
  /// Refuses all triggers due up to `now_ns` and returns their number.
  std::uint64_t refuse_until(std::uint64_t now_ns);
  /// Says that no triggers were offered until `now_ns`: those due are cancelled, and the plan continues from here.
  void resume(std::uint64_t now_ns);

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  void schedule_next();
  void reset_event_counter(std::uint64_t time_ns);

  const double period_ns_;  // 0: no rate
  const bool random_;
  const std::uint64_t seed_;
  const std::uint64_t limit_;
  const std::uint32_t epoch_;  // highest number of triggers between two resets
  const std::uint64_t ecr_period_ns_;

  std::uint64_t start_ns_ = 0;
  std::uint64_t due_ns_ = 0;
  std::uint64_t next_ecr_ns_ = kNever;
  std::uint64_t offered_ = 0;  // accepted and refused triggers
  std::uint64_t accepted_ = 0;
  double offset_ns_ = 0;  // time of the next trigger, from the start: the sum of the random spacings
  std::uint32_t ecrs_ = 0;
  std::uint32_t l1_ = 0;
};

}  // namespace rodeo::formats
