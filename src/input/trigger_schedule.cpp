#include "input/trigger_schedule.h"

#include <cmath>

#include "input/draw.h"

namespace rodeo::input {

TriggerSchedule::TriggerSchedule(const GeneratorSettings& settings)
    : period_ns_(settings.rate_hz > 0 ? 1e9 / settings.rate_hz : 0),
      random_(settings.random),
      seed_(draw::mix(settings.seed ^ 0x7121663e75)),
      limit_(settings.events == 0 ? kNever : settings.events),
      ecr_triggers_(settings.ecr_triggers == 0 ? kL1Ids : static_cast<std::uint32_t>(settings.ecr_triggers)),
      ecr_period_ns_(static_cast<std::uint64_t>(settings.ecr_period.count())) {}

void TriggerSchedule::start(std::uint64_t now_ns) {
  start_ns_ = due_ns_ = now_ns;
  if (ecr_period_ns_ > 0) next_ecr_ns_ = now_ns + ecr_period_ns_;
}

std::uint64_t TriggerSchedule::veto_until(std::uint64_t now_ns) {
  std::uint64_t vetoed = 0;
  while (period_ns_ > 0 && due_ns_ <= now_ns) {
    ++vetoed;
    schedule_next();
  }
  return vetoed;
}

void TriggerSchedule::schedule_next() {
  ++offered_;
  if (random_) {
    offset_ns_ -= period_ns_ * std::log(draw::unit(draw::mix(seed_ + offered_)));
  } else {
    offset_ns_ = period_ns_ * static_cast<double>(offered_);
  }
  due_ns_ = start_ns_ + static_cast<std::uint64_t>(offset_ns_);
}

void TriggerSchedule::reset_event_counter(std::uint64_t time_ns) {
  ecr_ = (ecr_ + 1) & 0xffU;
  l1_ = 0;
  if (ecr_period_ns_ > 0) {
    while (next_ecr_ns_ <= time_ns) next_ecr_ns_ += ecr_period_ns_;
  }
}

}  // namespace rodeo::input
