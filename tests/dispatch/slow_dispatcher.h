// The slow twin of the dispatcher: a map of events, and direct forms of all rules.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "dispatch/dispatcher.h"

namespace rodeo::test {

struct SlowEvent {
  enum { waiting, again, assigned, decided } state = waiting;
  std::optional<std::uint32_t> node = {};
  bool build_only = false;
  std::uint64_t assigned_ns = 0;
  dispatch::Verdict verdict = dispatch::Verdict::accepted;
};

/// The test tells it the node that gets an event, and checks this choice.
class SlowDispatcher {
 public:
  explicit SlowDispatcher(std::uint32_t capacity, std::uint64_t timeout_ns) : capacity_(capacity), timeout_ns_(timeout_ns) {}

  using Said = dispatch::Dispatcher::Said;

  bool offer(std::uint64_t id, bool ahead) {
    if (events.contains(id) || events.size() >= capacity_) return false;
    events[id] = {};
    (ahead ? ahead_ : order_).push_back(id);
    ++in;
    return true;
  }
  /// The event that must be next; nullopt if none waits.
  std::optional<std::uint64_t> next() const {
    const auto& others = ahead_.empty() ? order_ : ahead_;
    if (!again_.empty() && (others.empty() || !again_was_last_)) return again_.front();
    if (!others.empty()) return others.front();
    return std::nullopt;
  }
  void assign(std::uint64_t id, std::uint32_t node, std::uint64_t now_ns) {
    SlowEvent& event = events.at(id);
    again_was_last_ = event.state == SlowEvent::again;
    forget_waiting(id);
    event.state = SlowEvent::assigned;
    event.node = node;
    event.assigned_ns = now_ns;
    timed_.push_back(id);
  }
  void give_back(std::uint32_t node, std::uint64_t id, bool build_only) {
    const auto found = events.find(id);
    if (found == events.end() || found->second.state != SlowEvent::assigned || found->second.node != node) return;
    if (found->second.build_only != build_only) return;
    if (build_only) return put_again(id, true);
    std::erase(timed_, id);
    found->second.state = SlowEvent::waiting;
    order_.insert(order_.begin(), id);
  }
  void gone(std::uint32_t node) {
    for (const std::uint64_t id : of(node)) put_again(id, true);
  }
  void expire(std::uint64_t now_ns) {
    for (const std::uint64_t id : std::vector(timed_)) {
      if (events.at(id).assigned_ns + timeout_ns_ <= now_ns) put_again(id, true);
    }
  }
  Said decide(std::uint32_t node, const dispatch::Dispatcher::Decision& decision) {
    const auto found = events.find(decision.id);
    if (found == events.end()) return Said::unknown;
    SlowEvent& event = found->second;
    const bool recorded = decision.verdict == dispatch::Verdict::accepted || decision.verdict == dispatch::Verdict::debug;
    if (event.state == SlowEvent::decided) return Said::repeated;
    if (event.state == SlowEvent::assigned) {
      const bool own = event.node == node;
      if (own && event.build_only && !decision.build_only) return Said::late;
      if (!own && (event.build_only || !recorded)) return Said::late;
    }
    if (event.state == SlowEvent::again && event.node != node && !recorded) return Said::late;
    forget_waiting(decision.id);
    std::erase(timed_, decision.id);
    event.state = SlowEvent::decided;
    event.verdict = decision.verdict;
    ++verdicts[decision.verdict];
    return Said::counted;
  }
  void cleared(std::uint64_t id) {
    const auto found = events.find(id);
    if (found == events.end() || found->second.state != SlowEvent::decided) return;
    events.erase(found);
  }
  std::vector<std::uint64_t> of(std::uint32_t node) const {
    std::vector<std::uint64_t> ids;
    for (const std::uint64_t id : held_order(node)) ids.push_back(id);
    return ids;
  }

  std::map<std::uint64_t, SlowEvent> events;
  std::map<dispatch::Verdict, std::uint64_t> verdicts;
  std::uint64_t in = 0;

 private:
  std::vector<std::uint64_t> held_order(std::uint32_t node) const {
    std::vector<std::uint64_t> ids;
    for (const std::uint64_t id : timed_) {
      if (events.at(id).node == node) ids.push_back(id);
    }
    return ids;
  }
  void forget_waiting(std::uint64_t id) {
    std::erase(ahead_, id);
    std::erase(order_, id);
    std::erase(again_, id);
  }
  void put_again(std::uint64_t id, bool build_only) {
    SlowEvent& event = events.at(id);
    std::erase(timed_, id);
    event.state = SlowEvent::again;
    event.build_only = build_only;
    again_.push_back(id);
  }

  const std::size_t capacity_;
  const std::uint64_t timeout_ns_;
  std::vector<std::uint64_t> ahead_;
  std::vector<std::uint64_t> order_;
  std::vector<std::uint64_t> again_;
  std::vector<std::uint64_t> timed_;
  bool again_was_last_ = false;
};

}  // namespace rodeo::test
