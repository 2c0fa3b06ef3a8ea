#include "formats/trigger_plan.h"

#include <cmath>

#include "formats/draw.h"

namespace rodeo::formats {
namespace {

constexpr std::uint64_t kL1Ids = 1U << 24;

}  // namespace

TriggerPlan::TriggerPlan(const TriggerPlanSettings& settings)
    : period_ns_(settings.rate_hz > 0 ? 1e9 / settings.rate_hz : 0),
      random_(settings.random),
      seed_(draw::mix(settings.seed ^ 0x7121663e75)),
      limit_(settings.limit == 0 ? kNever : settings.limit),
      epoch_(static_cast<std::uint32_t>(settings.ecr_triggers == 0 ? kL1Ids : std::min(settings.ecr_triggers, kL1Ids))),
      ecr_period_ns_(static_cast<std::uint64_t>(settings.ecr_period.count())) {}

void TriggerPlan::start(std::uint64_t now_ns) {
  start_ns_ = due_ns_ = now_ns;
  if (ecr_period_ns_ > 0) next_ecr_ns_ = now_ns + ecr_period_ns_;
}

std::uint64_t TriggerPlan::refuse_until(std::uint64_t now_ns) {
  std::uint64_t refused = 0;
  for (; paced() && due_ns_ <= now_ns; ++refused) schedule_next();
  return refused;
}

void TriggerPlan::resume(std::uint64_t now_ns) {
  if (ecr_period_ns_ > 0 && next_ecr_ns_ <= now_ns) next_ecr_ns_ = now_ns + ecr_period_ns_;
  if (!paced() || due_ns_ > now_ns) return;
  start_ns_ += now_ns - due_ns_;
  schedule_next();
}

void TriggerPlan::schedule_next() {
  ++offered_;
  if (random_) {
    offset_ns_ -= period_ns_ * std::log(draw::unit(draw::mix(seed_ + offered_)));
  } else {
    offset_ns_ = period_ns_ * static_cast<double>(offered_);
  }
  due_ns_ = start_ns_ + static_cast<std::uint64_t>(offset_ns_);
}

void TriggerPlan::reset_event_counter(std::uint64_t time_ns) {
  ++ecrs_;
  l1_ = 0;
  if (ecr_period_ns_ > 0)
    while (next_ecr_ns_ <= time_ns) next_ecr_ns_ += ecr_period_ns_;
}

}  // namespace rodeo::formats
