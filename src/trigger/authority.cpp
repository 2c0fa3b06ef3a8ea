#include "trigger/authority.h"

#include <algorithm>
#include <utility>

namespace rodeo::trigger {
namespace {

/// Limit of triggers accepted per call when no clock sets their number.
constexpr std::uint64_t kBurst = 4096;
constexpr std::uint64_t kHoldNs = 100'000'000;

}  // namespace

TriggerAuthority::TriggerAuthority(TriggerSettings settings)
    : settings_(settings),
      plan_({.rate_hz = settings.rate_hz,
             .random = settings.spacing == TriggerSettings::Spacing::random,
             .seed = settings.seed,
             .limit = settings.limit,
             .ecr_triggers = settings.ecr_triggers,
             .ecr_period = settings.ecr_period}),
      wait_for_(std::max(settings.wait_for, 1U)),
      held_(settings.hold),
      lumi_block_(settings.lumi_block),
      scan_step_(settings.scan_step) {}

std::optional<TriggerHub::Follower> TriggerAuthority::join_peer(std::string name, std::string peer) {
  const std::lock_guard lock(mutex_);
  if (ledger_.here(name)) return std::nullopt;
  return ledger_.join(std::move(name), 0, std::move(peer));
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

/// The caller holds mutex_.
void TriggerAuthority::set_functions(Follower follower, unsigned ready, std::uint64_t now_ns) {
  // Triggers until now are offered without the new follower. A follower that leaves would not process further triggers, so
  // it gets none.
  if (ready > 0 && !ledger_.is_ready(follower) && started()) advance_locked(now_ns);
  ledger_.set_ready(follower, ready);
  start_if_ready(now_ns);
}

/// The caller holds mutex_. The time of triggers begins as soon as the first one could be offered.
void TriggerAuthority::start_if_ready(std::uint64_t now_ns) {
  if (started() || held_ || !enough_ready()) return;
  start_ns_ = now_ns_ = bucket_at_ns_ = block_since_ns_ = step_since_ns_ = now_ns;
  plan_.start(now_ns);
  plan_.refuse();  // the first trigger comes one gap later
}

TriggerAuthority::Now TriggerAuthority::now() const {
  const std::lock_guard lock(mutex_);
  return {plan_.accepted(), started() ? now_ns_ - start_ns_ : 0, plan_.ecrs()};
}

/// Ends the blocks and steps that are over at this time. An event has the numbers of the time of its acceptance.
void TriggerAuthority::mark_until(std::uint64_t time_ns) {
  const auto go_on = [&](std::chrono::nanoseconds period, std::uint64_t& since_ns, std::uint16_t& number) {
    const auto length = static_cast<std::uint64_t>(period.count());
    if (length == 0 || time_ns < since_ns + length) return;
    const std::uint64_t passed = (time_ns - since_ns) / length;
    number = static_cast<std::uint16_t>(number + passed);
    since_ns += passed * length;
  };
  go_on(settings_.lumi_block_period, block_since_ns_, lumi_block_);
  go_on(settings_.scan_step_period, step_since_ns_, scan_step_);
}

TriggerAuthority::Next TriggerAuthority::advance_marks(const Advance& advance, std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  advance_locked(now_ns);
  mark_until(now_ns);
  const auto go_on = [&](bool next, std::optional<std::uint16_t> to, std::uint64_t& since_ns, std::uint16_t& number) {
    if (!next && !to) return;
    number = to ? *to : static_cast<std::uint16_t>(number + 1);
    since_ns = now_ns;
  };
  go_on(advance.next_lumi_block, advance.lumi_block, block_since_ns_, lumi_block_);
  go_on(advance.next_scan_step, advance.scan_step, step_since_ns_, scan_step_);
  mark_next_ = true;
  return {plan_.accepted(), lumi_block_, scan_step_};
}

std::vector<TriggerMark> TriggerAuthority::marks() const {
  const std::lock_guard lock(mutex_);
  return {marks_.begin(), marks_.end()};
}

void TriggerAuthority::accept(std::uint64_t count, std::uint64_t time_ns) {
  mark_until(time_ns);
  const auto orbit = static_cast<std::uint32_t>(static_cast<double>(time_ns - start_ns_) / formats::kOrbitNs);
  while (count > 0) {
    const std::uint64_t sequence = plan_.accepted();
    const auto [first, here] = plan_.accept(count, time_ns);
    const TriggerRange range{.sequence = sequence,
                             .l1id = first.value,
                             .count = here,
                             .orbit = orbit,
                             .epoch = plan_.ecrs() >> 8,
                             .lumi_block = lumi_block_,
                             .scan_step = scan_step_};
    if (std::exchange(mark_next_, false) || marks_.empty() || marks_.back().lumi_block != lumi_block_ ||
        marks_.back().scan_step != scan_step_) {
      if (marks_.size() == kMostMarks) marks_.pop_front();
      marks_.push_back({range.id_of(0), lumi_block_, scan_step_, sequence});
    }
    ledger_.append(range);
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

std::uint64_t TriggerAuthority::hold_run(std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  advance_locked(now_ns);
  held_ = true;
  return plan_.accepted();
}

void TriggerAuthority::release(std::optional<unsigned> wait_for, std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  // Until now the hold, or the old `wait_for`, is in effect.
  advance_locked(now_ns);
  if (wait_for) wait_for_ = std::max(*wait_for, 1U);
  held_ = false;
  start_if_ready(now_ns);
}

void TriggerAuthority::advance_locked(std::uint64_t now_ns) {
  if (!started() || now_ns < now_ns_) return;
  const std::uint64_t passed = now_ns - std::exchange(now_ns_, now_ns);
  // No triggers are offered while functions are switched on or off: that is not dead time.
  if (held_ || now_ns < held_until_ns_ || !enough_ready()) return plan_.resume(now_ns);
  if (!plan_.exhausted()) offering_ns_ += passed;
  std::uint64_t room = ledger_.room();
  if (!plan_.paced()) {
    const std::uint64_t count = std::min({room, kBurst, plan_.left()});
    if (count == 0) return plan_.exhausted() ? void() : ledger_.held_up(0, passed);
    report_.offered += count;
    accept(count, now_ns);
    return;
  }
  std::uint64_t held_up = 0;
  std::uint64_t busy_ns = room == 0 && !plan_.exhausted() ? passed : 0;
  while (plan_.due_ns() <= now_ns && !plan_.exhausted()) {
    const std::uint64_t due = plan_.due_ns();
    ++report_.offered;
    if (room == 0) {
      // A follower that was full before this interval was busy for all of it. Another one was busy from the first trigger
      // for which it had no room.
      if (held_up++ == 0 && busy_ns == 0) busy_ns = now_ns - due;
    } else if (!dead_at(due)) {
      last_accepted_ns_ = due;
      accept(1, due);
      --room;
      continue;
    }
    plan_.refuse();
  }
  report_.vetoed_busy += held_up;
  if (held_up > 0 || busy_ns > 0) ledger_.held_up(held_up, busy_ns);
}

/// Applies simple dead time, then the leaky bucket. If the trigger is not dead, it goes into the bucket.
bool TriggerAuthority::dead_at(std::uint64_t time_ns) {
  if (plan_.accepted() > 0 && time_ns - last_accepted_ns_ < static_cast<std::uint64_t>(settings_.simple_dead_time.count())) {
    ++report_.vetoed_simple;
    return true;
  }
  if (settings_.bucket_triggers == 0) return false;
  const auto period = static_cast<double>(settings_.bucket_period.count());
  if (period > 0) bucket_ = std::max(0.0, bucket_ - static_cast<double>(time_ns - bucket_at_ns_) / period);
  bucket_at_ns_ = time_ns;
  if (bucket_ + 1 > static_cast<double>(settings_.bucket_triggers)) {
    ++report_.vetoed_complex;
    return true;
  }
  bucket_ += 1;
  return false;
}

std::uint64_t TriggerAuthority::take(Follower follower, std::uint64_t most, std::uint64_t now_ns,
                                     std::vector<TriggerRange>& out) {
  const std::lock_guard lock(mutex_);
  if (!ledger_.is_ready(follower)) return 0;
  if (plan_.paced() || ledger_.end() - ledger_.position(follower) < most) advance_locked(now_ns);
  return ledger_.take(follower, most, out);
}

bool TriggerAuthority::ended() const {
  const std::lock_guard lock(mutex_);
  return plan_.exhausted();
}

TriggerReport TriggerAuthority::report() const {
  const std::lock_guard lock(mutex_);
  TriggerReport report = report_;
  report.accepted = plan_.accepted();
  report.ecrs = plan_.ecrs();
  report.seconds = started() ? static_cast<double>(now_ns_ - start_ns_) * 1e-9 : 0;
  report.offering_seconds = static_cast<double>(offering_ns_) * 1e-9;
  report.lumi_block = lumi_block_;
  report.scan_step = scan_step_;
  report.marks = {marks_.begin(), marks_.end()};
  report.held = held_;
  report.wait_for = wait_for_;
  report.awaited = wait_for_ - std::min(wait_for_, ledger_.ready_functions());
  ledger_.report(report);
  return report;
}

}  // namespace rodeo::trigger
