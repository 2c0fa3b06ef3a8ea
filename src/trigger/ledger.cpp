#include "trigger/ledger.h"

#include <algorithm>

namespace rodeo::trigger {

bool TriggerLedger::here(const std::string& name) const {
  return std::ranges::any_of(followers_, [&](const State& state) { return state.connected && state.name == name; });
}

TriggerLedger::Follower TriggerLedger::join(std::string name, std::uint64_t capacity, std::string peer) {
  auto slot = std::ranges::find_if(followers_, [&](const State& state) { return !state.connected && state.name == name; });
  if (slot == followers_.end() && followers_.size() >= kMostNames)
    slot = std::ranges::find_if(followers_, [](const State& state) { return !state.connected; });
  if (slot == followers_.end()) slot = followers_.insert(followers_.end(), State{});
  if (slot->name != name) *slot = {};
  slot->name = std::move(name);
  slot->peer = std::move(peer);
  slot->capacity = slot->peer.empty() ? std::max<std::uint64_t>(capacity, 1) : 0;
  slot->connected = true;
  return static_cast<Follower>(slot - followers_.begin());
}

void TriggerLedger::leave(Follower follower) {
  set_ready(follower, 0);
  followers_[follower].connected = followers_[follower].busy = false;
}

void TriggerLedger::set_ready(Follower follower, unsigned functions) {
  State& state = followers_[follower];
  if (state.ready == functions) return;
  ready_ += functions - state.ready;
  if (state.ready == 0) {
    state.taken = end_;
    state.limit = end_ + state.capacity;
  } else if (functions == 0) {
    state.missed += end_ - state.taken;
  }
  state.ready = functions;
  if (functions == 0) forget();
}

void TriggerLedger::set_limit(Follower follower, std::uint64_t limit) {
  State& state = followers_[follower];
  state.limit = std::max(limit, state.taken);
}

void TriggerLedger::done(Follower follower, std::uint64_t count) {
  State& state = followers_[follower];
  state.limit = std::min(state.limit + count, state.taken + state.capacity);
}

void TriggerLedger::append(const TriggerRange& range) {
  if (range.count == 0) return;
  TriggerRange* const last = entries_.empty() ? nullptr : &entries_.back().range;
  // A range never wraps inside, so cards and the protocol need not check.
  if (last != nullptr && last->sequence + last->count == range.sequence && last->orbit == range.orbit &&
      last->epoch == range.epoch && last->lumi_block == range.lumi_block && last->scan_step == range.scan_step &&
      last->l1id + last->count == range.l1id && (range.l1id & 0xffffffU) != 0) {
    last->count += range.count;
  } else {
    entries_.push_back({end_, range});
  }
  end_ += range.count;
  if (ready_ == 0) forget();
}

std::uint64_t TriggerLedger::take(Follower follower, std::uint64_t most, std::vector<TriggerRange>& out) {
  State& state = followers_[follower];
  if (state.ready == 0) return 0;
  std::uint64_t taken = 0;
  // Few entries are alive, and most calls need the newest.
  auto entry =
      std::ranges::partition_point(entries_, [&](const Entry& one) { return one.index + one.range.count <= state.taken; });
  for (; entry != entries_.end() && taken < most; ++entry) {
    const TriggerRange& range = entry->range;
    const std::uint64_t skip = state.taken - entry->index;
    const std::uint64_t count = std::min(range.count - skip, most - taken);
    TriggerRange& part = out.emplace_back(range);
    part.sequence += skip;
    part.l1id = range.l1id_of(static_cast<std::uint32_t>(skip));
    part.count = static_cast<std::uint32_t>(count);
    state.taken += count;
    taken += count;
  }
  state.triggers += taken;
  if (taken > 0) forget();
  return taken;
}

void TriggerLedger::forget() {
  std::uint64_t oldest = end_;
  for (const State& state : followers_) {
    if (state.ready > 0) oldest = std::min(oldest, state.taken);
  }
  while (!entries_.empty() && entries_.front().index + entries_.front().range.count <= oldest) entries_.pop_front();
}

std::uint64_t TriggerLedger::room() const {
  std::uint64_t least = kNoLimit;
  for (const State& state : followers_) {
    if (state.ready == 0) continue;
    least = std::min(least, state.busy || state.limit <= end_ ? 0 : state.limit - end_);
  }
  return least == kNoLimit ? 0 : least;
}

void TriggerLedger::held_up(std::uint64_t triggers, std::uint64_t ns) {
  State* last = nullptr;
  std::size_t busy = 0;
  for (State& state : followers_) {
    if (state.ready == 0 || (!state.busy && state.limit > end_)) continue;
    state.held_up += triggers;
    state.busy_ns += ns;
    last = &state;
    ++busy;
  }
  if (busy == 1) last->held_up_alone += triggers;
}

void TriggerLedger::report(TriggerReport& report) const {
  std::uint64_t most = 0;
  for (const State& state : followers_) {
    if (state.held_up > most) {
      most = state.held_up;
      report.busy_follower = state.name;
    }
    if (!state.connected && state.triggers + state.held_up + state.busy_ns == 0) continue;
    const double offered = static_cast<double>(report.offered);
    TriggerFollowerReport& one = report.followers.emplace_back(state);
    one.busy_seconds = static_cast<double>(state.busy_ns) * 1e-9;
    one.dead_time = offered > 0 ? static_cast<double>(state.held_up) / offered : 0;
  }
}

}  // namespace rodeo::trigger
