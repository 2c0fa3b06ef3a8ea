#include "emulator/trigger_authority.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.h"

namespace rodeo::emulator {
namespace {

/// What is taken at once where no clock says how many.
constexpr std::uint64_t kBurst = 4096;

}  // namespace

TriggerAuthority::Follower TriggerAuthority::join(std::string name, std::uint64_t capacity) {
  const std::lock_guard lock(mutex_);
  followers_.push_back({.name = std::move(name), .capacity = std::max<std::uint64_t>(capacity, 1), .here = true});
  return followers_.size() - 1;
}

void TriggerAuthority::leave(Follower follower) {
  const std::lock_guard lock(mutex_);
  followers_[follower].here = followers_[follower].ready = false;
  forget();
}

void TriggerAuthority::set_ready(Follower follower, bool ready, std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  FollowerState& state = followers_[follower];
  if (state.ready == ready) return;
  if (started()) advance_locked(now_ns);
  state.ready = ready;
  state.taken = state.done = report_.accepted;
  if (started()) return;
  if (std::ranges::count_if(followers_, [](const auto& one) { return one.ready; }) <
      static_cast<std::ptrdiff_t>(settings_.wait_for))
    return;
  start_ns_ = now_ns_ = now_ns;
  next_ns_ = static_cast<double>(now_ns) + (settings_.rate_hz > 0 ? gap_ns() : 0);
  next_ecr_ns_ = now_ns + static_cast<std::uint64_t>(settings_.ecr_period.count());
  bucket_at_ns_ = static_cast<double>(now_ns);
}

double TriggerAuthority::gap_ns() {
  const double mean = 1e9 / settings_.rate_hz;
  if (settings_.spacing == TriggerSettings::Spacing::periodic) return mean;
  const double uniform = (static_cast<double>(random_() >> 11) + 1) * 0x1p-53;  // (0, 1]
  return -std::log(uniform) * mean;
}

TriggerAuthority::FollowerState* TriggerAuthority::busy_follower() {
  for (FollowerState& state : followers_) {
    if (state.ready && (state.busy || report_.accepted - state.done >= state.capacity)) return &state;
  }
  return nullptr;
}

std::uint64_t TriggerAuthority::room() const {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const FollowerState& state : followers_) {
    if (!state.ready) continue;
    const std::uint64_t open = report_.accepted - state.done;
    least = std::min(least, state.busy || open >= state.capacity ? 0 : state.capacity - open);
  }
  return least == std::numeric_limits<std::uint64_t>::max() ? 0 : least;
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
    TriggerRange* last = ranges_.empty() ? nullptr : &ranges_.back();
    const bool grows = last != nullptr && last->sequence + last->count == report_.accepted && last->orbit == orbit &&
                       last->l1id + last->count == next_l1id_ && (next_l1id_ & 0xffffffU) != 0;
    if (grows) {
      last->count += static_cast<std::uint32_t>(here);
    } else {
      ranges_.push_back({report_.accepted, next_l1id_, static_cast<std::uint32_t>(here), orbit});
    }
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

void TriggerAuthority::pause(std::uint64_t now_ns) {
  constexpr std::uint64_t kPauseNs = 100'000'000;
  const std::lock_guard lock(mutex_);
  paused_until_ns_ = now_ns + kPauseNs;
}

void TriggerAuthority::advance_locked(std::uint64_t now_ns) {
  if (!started() || now_ns < now_ns_) return;
  now_ns_ = now_ns;
  if (now_ns < paused_until_ns_) {
    if (settings_.rate_hz > 0 && next_ns_ <= static_cast<double>(now_ns)) next_ns_ = static_cast<double>(now_ns) + gap_ns();
    return;
  }
  const auto limit_left = [&] {
    return settings_.limit == 0 ? std::numeric_limits<std::uint64_t>::max() : settings_.limit - report_.accepted;
  };
  if (settings_.ecr_period.count() > 0 && settings_.rate_hz <= 0 && now_ns >= next_ecr_ns_) {
    event_counter_reset();
    next_ecr_ns_ = now_ns + static_cast<std::uint64_t>(settings_.ecr_period.count());
  }
  if (settings_.rate_hz <= 0) {
    const std::uint64_t count = std::min({room(), kBurst, limit_left()});
    if (count == 0) return;
    report_.offered += count;
    accept(count, now_ns);
    return;
  }
  const auto now = static_cast<double>(now_ns);
  // With nobody to send data there is no run: what would have been offered is not dead time.
  if (std::ranges::none_of(followers_, [](const auto& one) { return one.ready; })) {
    if (next_ns_ <= now) next_ns_ = now + gap_ns();
    return;
  }
  const auto simple = static_cast<double>(settings_.simple_dead_time.count());
  const auto period = static_cast<double>(settings_.bucket_period.count());
  FollowerState* busy = busy_follower();
  std::uint64_t room_left = busy != nullptr ? 0 : room();
  for (; next_ns_ <= now; next_ns_ += gap_ns()) {
    if (settings_.ecr_period.count() > 0 && next_ns_ >= static_cast<double>(next_ecr_ns_)) {
      event_counter_reset();
      next_ecr_ns_ += static_cast<std::uint64_t>(settings_.ecr_period.count());
    }
    if (limit_left() == 0) return;
    ++report_.offered;
    if (room_left == 0) {
      if (busy == nullptr) busy = busy_follower();
      if (busy != nullptr) ++busy->held_up;
      ++report_.vetoed_busy;
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
    --room_left;
  }
}

std::uint64_t TriggerAuthority::take(Follower follower, std::uint64_t most, std::uint64_t now_ns,
                                     std::vector<TriggerRange>& out) {
  const std::lock_guard lock(mutex_);
  FollowerState& state = followers_[follower];
  if (!state.ready) return 0;
  if (settings_.rate_hz > 0 || report_.accepted - state.taken < most) advance_locked(now_ns);
  std::uint64_t taken = 0;
  // Few ranges are alive; the newest are wanted most often.
  auto range = std::ranges::partition_point(
      ranges_, [&](const TriggerRange& one) { return one.sequence + one.count <= state.taken; });
  for (; range != ranges_.end() && taken < most; ++range) {
    const std::uint64_t skip = state.taken - range->sequence;
    const std::uint64_t count = std::min(range->count - skip, most - taken);
    out.push_back({.sequence = state.taken,
                   .l1id = range->l1id_of(static_cast<std::uint32_t>(skip)),
                   .count = static_cast<std::uint32_t>(count),
                   .orbit = range->orbit});
    state.taken += count;
    taken += count;
  }
  if (taken > 0) forget();
  return taken;
}

void TriggerAuthority::forget() {
  std::uint64_t oldest = report_.accepted;
  for (const FollowerState& state : followers_) {
    if (state.ready) oldest = std::min(oldest, state.taken);
  }
  while (!ranges_.empty() && ranges_.front().sequence + ranges_.front().count <= oldest) ranges_.pop_front();
}

void TriggerAuthority::done(Follower follower, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  FollowerState& state = followers_[follower];
  state.done = std::min(state.done + count, state.taken);
}

void TriggerAuthority::set_busy(Follower follower, bool busy) {
  const std::lock_guard lock(mutex_);
  followers_[follower].busy = busy;
}

bool TriggerAuthority::ended() const {
  const std::lock_guard lock(mutex_);
  return settings_.limit > 0 && report_.accepted >= settings_.limit;
}

TriggerReport TriggerAuthority::report() const {
  const std::lock_guard lock(mutex_);
  TriggerReport report = report_;
  report.seconds = started() ? static_cast<double>(now_ns_ - start_ns_) * 1e-9 : 0;
  std::uint64_t most = 0;
  for (const FollowerState& state : followers_) {
    if (state.held_up > most) {
      most = state.held_up;
      report.busy_follower = state.name;
    }
  }
  return report;
}

void LocalTriggerSource::set_ready(bool ready) { authority_.set_ready(follower_, ready, base::steady_now_ns()); }

void LocalTriggerSource::pause() { authority_.pause(base::steady_now_ns()); }

std::uint64_t LocalTriggerSource::take(std::uint64_t most, std::vector<TriggerRange>& out) {
  return authority_.take(follower_, most, base::steady_now_ns(), out);
}

}  // namespace rodeo::emulator
