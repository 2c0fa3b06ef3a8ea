// The trigger authority of a lone generator: when triggers are due, and which L1 ids the accepted ones get.
#pragma once

#include <cstdint>
#include <limits>

#include "input/generator_settings.h"
#include "rodeo/ids.h"

namespace rodeo::input {

/// Offers triggers on a schedule that depends on the settings alone. Each is accepted or vetoed by the caller; accepted ones get
/// consecutive L1 ids. Single-threaded; time is an argument (nanoseconds, any origin).
class TriggerSchedule {
 public:
  explicit TriggerSchedule(const GeneratorSettings& settings);

  void start(std::uint64_t now_ns);

  /// When the next trigger is due. Without a rate one is always due.
  std::uint64_t due_ns() const { return due_ns_; }
  bool paced() const { return period_ns_ > 0; }

  /// True when as many triggers as asked for were accepted.
  bool exhausted() const { return accepted_ == limit_; }

  /// Accepts the trigger that is due; `time_ns` is when it happens (its due time, or now without a rate).
  L1Id accept(std::uint64_t time_ns) {
    if (l1_ == kL1Ids || l1_ == ecr_triggers_ || time_ns >= next_ecr_ns_) reset_event_counter(time_ns);
    const L1Id id = L1Id::of(ecr_, l1_++);
    ++accepted_;
    advance();
    return id;
  }

  /// Refuses all triggers that are due up to `now_ns` and returns how many those were.
  std::uint64_t veto_until(std::uint64_t now_ns);

  std::uint64_t accepted() const { return accepted_; }

 private:
  static constexpr std::uint32_t kL1Ids = 1U << 24;
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  void advance() {
    if (period_ns_ > 0) schedule_next();
  }
  void schedule_next();
  void reset_event_counter(std::uint64_t time_ns);

  const double period_ns_;  // 0: no rate
  const bool random_;
  const std::uint64_t seed_;
  const std::uint64_t limit_;
  const std::uint32_t ecr_triggers_;
  const std::uint64_t ecr_period_ns_;

  std::uint64_t start_ns_ = 0;
  std::uint64_t due_ns_ = 0;
  std::uint64_t next_ecr_ns_ = kNever;
  std::uint64_t offered_ = 0;  // accepted and vetoed
  std::uint64_t accepted_ = 0;
  double offset_ns_ = 0;  // of the next trigger from the start; random spacing adds up
  std::uint32_t ecr_ = 0;
  std::uint32_t l1_ = 0;
};

}  // namespace rodeo::input
