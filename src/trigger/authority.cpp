#include "trigger/authority.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace rodeo::trigger {
namespace {

/// What is taken at once where no clock says how many.
constexpr std::uint64_t kBurst = 4096;
constexpr std::uint64_t kHoldNs = 100'000'000;

}  // namespace

TriggerHub::Follower TriggerAuthority::join(std::string name, std::uint64_t capacity) {
  const std::lock_guard lock(mutex_);
  return ledger_.join(std::move(name), capacity);
}

std::optional<TriggerHub::Follower> TriggerAuthority::join_peer(std::string name, std::string peer) {
  const std::lock_guard lock(mutex_);
  if (ledger_.here(name)) return std::nullopt;
  return ledger_.join(std::move(name), 0, std::move(peer));
}

void TriggerAuthority::leave(Follower follower) {
  const std::lock_guard lock(mutex_);
  ledger_.leave(follower);
}

void TriggerAuthority::set_ready(Follower follower, bool ready, std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  set_functions(follower, ready ? 1 : 0, now_ns);
}

void TriggerAuthority::set_peer(Follower follower, unsigned ready, bool busy, std::uint64_t room, std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  set_functions(follower, ready, now_ns);
  ledger_.set_busy(follower, busy);
  if (ready > 0) ledger_.set_limit(follower, ledger_.position(follower) + room);
}

/// With mutex_ held.
void TriggerAuthority::set_functions(Follower follower, unsigned ready, std::uint64_t now_ns) {
  // Those that are ready already get what came until now; who leaves takes nothing with it that it will not do.
  if (ready > 0 && !ledger_.is_ready(follower) && started()) advance_locked(now_ns);
  ledger_.set_ready(follower, ready);
  if (started() || !enough_ready()) return;
  start_ns_ = now_ns_ = now_ns;
  next_ns_ = static_cast<double>(now_ns) + (settings_.rate_hz > 0 ? gap_ns() : 0);
  next_ecr_ns_ = now_ns + static_cast<std::uint64_t>(settings_.ecr_period.count());
  bucket_at_ns_ = static_cast<double>(now_ns);
}

TriggerAuthority::Now TriggerAuthority::now() const {
  const std::lock_guard lock(mutex_);
  return {report_.accepted, started() ? now_ns_ - start_ns_ : 0, report_.ecrs};
}

double TriggerAuthority::gap_ns() {
  const double mean = 1e9 / settings_.rate_hz;
  if (settings_.spacing == TriggerSettings::Spacing::periodic) return mean;
  const double uniform = (static_cast<double>(random_() >> 11) + 1) * 0x1p-53;  // (0, 1]
  return -std::log(uniform) * mean;
}

void TriggerAuthority::event_counter_reset() {
  next_l1id_ = ((next_l1id_ >> 24) + 1) << 24;
  since_ecr_ = 0;
  ++report_.ecrs;
}

void TriggerAuthority::accept(std::uint64_t count, std::uint64_t time_ns) {
  const auto orbit = static_cast<std::uint32_t>(static_cast<double>(time_ns - start_ns_) / kOrbitNs);
  while (count > 0) {
    if (settings_.ecr_triggers > 0 && since_ecr_ == settings_.ecr_triggers) event_counter_reset();
    std::uint64_t here = std::min<std::uint64_t>(count, 0x1000000U - (next_l1id_ & 0xffffffU));
    if (settings_.ecr_triggers > 0) here = std::min(here, settings_.ecr_triggers - since_ecr_);
    ledger_.append({report_.accepted, next_l1id_, static_cast<std::uint32_t>(here), orbit});
    next_l1id_ = (next_l1id_ & 0xff000000U) | ((next_l1id_ + static_cast<std::uint32_t>(here)) & 0xffffffU);
    since_ecr_ += here;
    report_.accepted += here;
    count -= here;
  }
}

void TriggerAuthority::advance(std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  advance_locked(now_ns);
}

bool TriggerAuthority::hold(std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  held_until_ns_ = now_ns + kHoldNs;
  return true;
}

void TriggerAuthority::advance_locked(std::uint64_t now_ns) {
  if (!started() || now_ns < now_ns_) return;
  const std::uint64_t passed = now_ns - std::exchange(now_ns_, now_ns);
  const auto now = static_cast<double>(now_ns);
  // While functions are switched on and off nothing is offered: that is not dead time.
  if (now_ns < held_until_ns_ || !enough_ready()) {
    if (settings_.rate_hz > 0 && next_ns_ <= now) next_ns_ = now + gap_ns();
    if (now_ns >= next_ecr_ns_) next_ecr_ns_ = now_ns + static_cast<std::uint64_t>(settings_.ecr_period.count());
    return;
  }
  const auto limit_left = [&] {
    return settings_.limit == 0 ? std::numeric_limits<std::uint64_t>::max() : settings_.limit - report_.accepted;
  };
  if (limit_left() > 0) offering_ns_ += passed;
  if (settings_.ecr_period.count() > 0 && settings_.rate_hz <= 0 && now_ns >= next_ecr_ns_) {
    event_counter_reset();
    next_ecr_ns_ = now_ns + static_cast<std::uint64_t>(settings_.ecr_period.count());
  }
  if (settings_.rate_hz <= 0) {
    const std::uint64_t count = std::min({ledger_.room(), kBurst, limit_left()});
    if (count == 0) return limit_left() > 0 ? ledger_.held_up(0, passed) : void();
    report_.offered += count;
    accept(count, now_ns);
    return;
  }
  const auto simple = static_cast<double>(settings_.simple_dead_time.count());
  const auto period = static_cast<double>(settings_.bucket_period.count());
  std::uint64_t room = ledger_.room();
  std::uint64_t held_up = 0;
  std::uint64_t busy_ns = room == 0 && limit_left() > 0 ? passed : 0;
  for (; next_ns_ <= now; next_ns_ += gap_ns()) {
    if (settings_.ecr_period.count() > 0 && next_ns_ >= static_cast<double>(next_ecr_ns_)) {
      event_counter_reset();
      next_ecr_ns_ += static_cast<std::uint64_t>(settings_.ecr_period.count());
    }
    if (limit_left() == 0) break;
    ++report_.offered;
    if (room == 0) {
      // Who was full before was so all the time, who became so from the first trigger on that found no room.
      if (held_up++ == 0 && busy_ns == 0) busy_ns = static_cast<std::uint64_t>(now - next_ns_);
      continue;
    }
    if (next_ns_ - last_accepted_ns_ < simple) {
      ++report_.vetoed_simple;
      continue;
    }
    if (settings_.bucket_triggers > 0) {
      if (period > 0) bucket_ = std::max(0.0, bucket_ - (next_ns_ - bucket_at_ns_) / period);
      bucket_at_ns_ = next_ns_;
      if (bucket_ + 1 > static_cast<double>(settings_.bucket_triggers)) {
        ++report_.vetoed_complex;
        continue;
      }
      bucket_ += 1;
    }
    last_accepted_ns_ = next_ns_;
    accept(1, static_cast<std::uint64_t>(next_ns_));
    --room;
  }
  report_.vetoed_busy += held_up;
  if (held_up > 0 || busy_ns > 0) ledger_.held_up(held_up, busy_ns);
}

std::uint64_t TriggerAuthority::take(Follower follower, std::uint64_t most, std::uint64_t now_ns,
                                     std::vector<TriggerRange>& out) {
  const std::lock_guard lock(mutex_);
  if (!ledger_.is_ready(follower)) return 0;
  if (settings_.rate_hz > 0 || ledger_.end() - ledger_.position(follower) < most) advance_locked(now_ns);
  return ledger_.take(follower, most, out);
}

void TriggerAuthority::done(Follower follower, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  ledger_.done(follower, count);
}

void TriggerAuthority::set_busy(Follower follower, bool busy) {
  const std::lock_guard lock(mutex_);
  ledger_.set_busy(follower, busy);
}

bool TriggerAuthority::ended() const {
  const std::lock_guard lock(mutex_);
  return settings_.limit > 0 && report_.accepted >= settings_.limit;
}

TriggerReport TriggerAuthority::report() const {
  const std::lock_guard lock(mutex_);
  TriggerReport report = report_;
  report.seconds = started() ? static_cast<double>(now_ns_ - start_ns_) * 1e-9 : 0;
  report.offering_seconds = static_cast<double>(offering_ns_) * 1e-9;
  const unsigned wanted = std::max(settings_.wait_for, 1U);
  report.awaited = wanted - std::min(wanted, ledger_.ready_functions());
  ledger_.report(report);
  return report;
}

}  // namespace rodeo::trigger
