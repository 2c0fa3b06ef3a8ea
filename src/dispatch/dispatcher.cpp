#include "dispatch/dispatcher.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace rodeo::dispatch {
namespace {

using C = DispatchCounter;

/// Messages in a round of assignments. If more events wait, each message carries several.
constexpr std::uint32_t kMessagesPerRound = 64;

bool recorded(Verdict verdict) { return verdict == Verdict::accepted || verdict == Verdict::debug; }

}  // namespace

Dispatcher::Dispatcher(DispatcherSettings settings)
    : settings_(settings),
      assigner_(settings.policy),
      table_(settings.capacity + settings.reserve),
      slots_(settings.capacity + settings.reserve),
      free_(settings.capacity + settings.reserve),
      random_(settings.seed) {
  std::iota(free_.rbegin(), free_.rend(), 0U);
}

Dispatcher::Dispatcher(const Dispatcher& other)
    : settings_(other.settings_),
      assigner_(other.assigner_),
      table_(other.table_),
      slots_(other.slots_),
      free_(other.free_),
      nodes_(other.nodes_),
      ahead_(other.ahead_),
      waiting_(other.waiting_),
      again_(other.again_),
      again_was_last_(other.again_was_last_),
      timed_(other.timed_),
      decided_(other.decided_),
      random_(other.random_) {
  for (std::size_t i = 0; i < kDispatchCounters.size(); ++i)
    counters_.add(static_cast<C>(i), other.counters_.read(static_cast<C>(i)));
}

std::uint32_t Dispatcher::acquire_slot(const Event& event) {
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  slots_[slot] = Slot{.event = event};
  table_.insert(event.id, slot);
  return slot;
}

Dispatcher::Offered Dispatcher::offer(const Event& event, Offer how) {
  if (knows(event.id)) {
    counters_.add(C::repeated_offers);
    return Offered::repeated;
  }
  if (room() == 0) return Offered::full;
  const std::uint32_t slot = acquire_slot(event);
  slots_[slot].state = State::waiting;
  slots_[slot].build_only = how.build_only;
  slots_[slot].ahead = how.turn == Offer::Turn::ahead;
  (slots_[slot].ahead ? ahead_ : waiting_).push_back(slots_, slot);
  counters_.add(C::offered);
  return Offered::taken;
}

bool Dispatcher::adopt(const Event& event, std::uint32_t node, bool build_only, std::uint64_t now_ns) {
  std::uint32_t slot = table_.find(event.id);
  if (slot == EventTable::kNone) {
    if (free_.empty()) return false;
    slot = acquire_slot(event);
    counters_.add(C::adopted);
  } else {
    const Slot& had = slots_[slot];
    if (had.state == State::assigned && had.node == node) return had.build_only == build_only;
    // If two nodes report an event, the node that only builds it got the event later.
    const bool stronger = had.state == State::assigned && build_only && !had.build_only;
    if (stronger) {
      unassign(slot);
      timed_.remove(slots_, slot);
    } else if (had.state == State::again && had.node != node && had.build_only && !build_only) {
      return false;  // That node may have recorded it.
    } else if (had.state == State::waiting || had.state == State::again) {
      leave_queue(slot);
    } else {
      return false;
    }
  }
  Slot& has = slots_[slot];
  has.state = State::assigned;
  has.node = node;
  has.build_only = build_only;
  has.assigned_ns = now_ns;
  if (has.first_assigned_ns == 0) has.first_assigned_ns = now_ns;
  timed_.push_back(slots_, slot);
  nodes_[node].slots.push_back(slots_, slot);
  set(node);
  return true;
}

std::uint32_t Dispatcher::add_node() {
  const auto node = static_cast<std::uint32_t>(nodes_.size());
  nodes_.emplace_back();
  assigner_.resize(node + 1);
  return node;
}

void Dispatcher::set_room(std::uint32_t node, std::uint32_t events) {
  nodes_[node].room = events;
  set(node);
}

void Dispatcher::set(std::uint32_t node) { assigner_.set(node, nodes_[node].slots.size(), nodes_[node].room > 0); }

void Dispatcher::node_gone(std::uint32_t node) {
  Node& gone = nodes_[node];
  while (!gone.slots.empty()) {
    counters_.add(C::node_gone);
    wait_again(gone.slots.front(), true);
  }
  gone.room = 0;
  set(node);
}

void Dispatcher::undelivered(std::uint32_t node, std::uint64_t id) {
  const std::uint32_t slot = table_.find(id);
  if (slot == EventTable::kNone || slots_[slot].state != State::assigned || slots_[slot].node != node) return;
  counters_.add(C::undelivered);
  wait_again(slot, slots_[slot].build_only);
}

void Dispatcher::give_back(std::uint32_t node, std::uint64_t id, bool build_only) {
  const std::uint32_t slot = table_.find(id);
  if (slot == EventTable::kNone || slots_[slot].state != State::assigned || slots_[slot].node != node) return;
  if (slots_[slot].build_only != build_only) return;
  counters_.add(C::given_back);
  if (build_only) return wait_again(slot, true);  // A former node may have recorded it.
  unassign(slot);
  timed_.remove(slots_, slot);
  slots_[slot].state = State::waiting;
  slots_[slot].ahead = false;
  waiting_.push_front(slots_, slot);
}

/// If few events wait, each message has one, so that no event waits behind another. If many wait, a message carries several,
/// because the number of messages is the limit.
std::uint32_t Dispatcher::at_once() const {
  return std::clamp((ahead_.size() + waiting_.size()) / kMessagesPerRound, 1U, std::max(settings_.most_at_once, 1U));
}

/// xorshift64*
std::uint64_t Dispatcher::draw(std::uint32_t below) {
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  return (random_ * 0x2545f4914f6cdd1dU >> 32) * below >> 32;
}

/// Call it only while some event waits.
SlotQueue& Dispatcher::next_queue() {
  SlotQueue& others = ahead_.empty() ? waiting_ : ahead_;
  if (again_.empty()) return others;
  return again_was_last_ && !others.empty() ? others : again_;
}

/// Call it only while some node has room. The node that had the event before gets it again only if no other node has room.
std::uint32_t Dispatcher::choose() {
  const std::uint32_t first = assigner_.first([&](std::uint32_t nodes) { return draw(nodes); });
  const std::uint32_t had = slots_[next_queue().front()].node;
  std::uint32_t node = assigner_.from(first);
  if (node == had) {
    assigner_.set(had, 0, false);
    const std::uint32_t other = assigner_.from(first);
    set(had);
    if (other != Assigner::kNone) node = other;
  }
  return node;
}

std::uint32_t Dispatcher::give(std::uint32_t node, std::uint64_t now_ns) {
  SlotQueue& from = next_queue();
  again_was_last_ = &from == &again_;
  const std::uint32_t slot = from.front();
  from.remove(slots_, slot);
  Slot& given = slots_[slot];
  given.state = State::assigned;
  given.node = node;
  given.assigned_ns = now_ns;
  if (given.first_assigned_ns == 0) given.first_assigned_ns = now_ns;
  timed_.push_back(slots_, slot);
  nodes_[node].slots.push_back(slots_, slot);
  --nodes_[node].room;
  set(node);
  assigner_.took(node);
  counters_.add(C::assignments);
  return slot;
}

void Dispatcher::unassign(std::uint32_t slot) {
  const std::uint32_t node = slots_[slot].node;
  nodes_[node].slots.remove(slots_, slot);
  set(node);
}

void Dispatcher::wait_again(std::uint32_t slot, bool build_only) {
  unassign(slot);
  timed_.remove(slots_, slot);
  slots_[slot].state = State::again;
  slots_[slot].build_only = build_only;
  again_.push_back(slots_, slot);
}

void Dispatcher::leave_queue(std::uint32_t slot) {
  SlotQueue& first = slots_[slot].ahead ? ahead_ : waiting_;
  (slots_[slot].state == State::waiting ? first : again_).remove(slots_, slot);
}

Dispatcher::Said Dispatcher::decide(std::uint32_t node, const Decision& decision) {
  const std::uint32_t slot = table_.find(decision.id);
  if (slot == EventTable::kNone) {
    counters_.add(C::unknown_decisions);
    return Said::unknown;
  }
  const Slot& of = slots_[slot];
  const auto late = [&] {
    counters_.add(C::late_decisions);
    return Said::late;
  };
  switch (of.state) {
    case State::decided: counters_.add(C::repeated_decisions); return Said::repeated;  // Case 6.
    case State::free: break;
    case State::again:
      // Case 3 with the other node gone: that node may have recorded it.
      if (of.node != node && !recorded(decision.verdict)) return late();
      [[fallthrough]];
    // Case 2. After a restart of the supervisor, the former supervisor may have assigned the event to the node.
    case State::waiting: leave_queue(slot); return apply(slot, node, decision);
    case State::assigned:
      if (of.node == node) {
        if (of.build_only && !decision.build_only) return late();  // Case 5.
      } else if (of.build_only || !recorded(decision.verdict)) {
        return late();  // Cases 3 and 4.
      }
      unassign(slot);
      timed_.remove(slots_, slot);
      return apply(slot, node, decision);  // Cases 1 and 4.
  }
  return Said::unknown;
}

Dispatcher::Said Dispatcher::adopt_decision(std::uint32_t node, const Decision& decision) {
  if (knows(decision.id) || free_.empty()) return decide(node, decision);
  counters_.add(C::adopted);
  return apply(acquire_slot({.id = decision.id}), node, decision);
}

Dispatcher::Said Dispatcher::apply(std::uint32_t slot, std::uint32_t node, const Decision& decision) {
  slots_[slot].state = State::decided;
  slots_[slot].node = node;
  ++decided_;
  constexpr std::array kCounters{C::accepted, C::rejected, C::debug, C::lost};
  counters_.add(kCounters[static_cast<std::size_t>(decision.verdict)]);
  if (decision.partial && recorded(decision.verdict)) counters_.add(C::partial);
  return Said::counted;
}

std::uint32_t Dispatcher::expire(std::uint64_t now_ns) {
  std::uint32_t count = 0;
  if (settings_.timeout_ns == 0) return count;
  while (!timed_.empty() && slots_[timed_.front()].assigned_ns + settings_.timeout_ns <= now_ns) {
    counters_.add(C::timed_out);
    wait_again(timed_.front(), true);
    ++count;
  }
  return count;
}

void Dispatcher::cleared(std::uint64_t id) {
  const std::uint32_t slot = table_.find(id);
  if (slot == EventTable::kNone || slots_[slot].state != State::decided) return;
  table_.erase(id);
  slots_[slot].state = State::free;
  free_.push_back(slot);
  --decided_;
  counters_.add(C::cleared);
}

bool Dispatcher::adds_up() const {
  const std::uint64_t in = counter(C::offered) + counter(C::adopted);
  const std::uint64_t ended = counter(C::accepted) + counter(C::rejected) + counter(C::debug) + counter(C::lost);
  return in == waiting() + assigned() + ended && ended == decided() + counter(C::cleared) &&
         slots_.size() - free_.size() == waiting() + assigned() + decided();
}

}  // namespace rodeo::dispatch
