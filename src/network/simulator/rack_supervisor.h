// The supervisor of one rack: chooses the node of each event with the farm's code (dispatch/assigner.h). Clears and lost
// nodes are not simulated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "dispatch/assigner.h"
#include "network/policy.h"
#include "network/simulator/event_source.h"

namespace rodeo::network {

class RackSupervisor {
 public:
  RackSupervisor(const Topology& topology, const Traffic& traffic, std::uint32_t rack, std::uint64_t seed)
      : source_(topology, traffic, rack, seed),
        assignment_(traffic.assignment),
        limit_(traffic.events_in_flight == 0 ? UINT32_MAX : traffic.events_in_flight),
        equal_(traffic.size_spread == SizeSpread::fixed),
        load_(topology.nodes / topology.racks, 0),
        assigner_(policy_of(traffic.assignment), topology.nodes / topology.racks),
        choice_(seed, 4 * rack + 2) {
    for (std::uint32_t node = 0; node < load_.size(); ++node) change(node, 0);
  }

  /// Says that a node of this rack will finish an event at this time.
  void finish(Picoseconds time, std::uint32_t node) {
    done_.push_back({time, node});
    std::push_heap(done_.begin(), done_.end(), std::greater<>());
  }

  /// Sets the error of the times of finish(); 0: the times are exact. If it is not 0, doubtful() says, during assign(),
  /// whether the choice of the node depends on the error.
  void doubt(Picoseconds slack) { slack_ = slack; }
  bool doubtful() const { return doubtful_; }

  Picoseconds next_time() const { return std::min(source_.next_time(), done_.empty() ? kNever : done_.front().time); }

  /// Handles all events and ends before `end`, in order: calls assign(time, node, event bytes). At equal times a finishing
  /// node comes before an event.
  template <typename Assign>
  void advance(Picoseconds end, Assign&& assign) {
    for (;;) {
      const Picoseconds time = next_time();
      if (time >= end) return;
      if (!done_.empty() && done_.front().time == time) {
        std::pop_heap(done_.begin(), done_.end(), std::greater<>());
        change(done_.back().node, -1);
        if (slack_ != 0) lately_.push_back(done_.back());
        done_.pop_back();
      } else {
        source_.pop();
        ++offered_;
        ++waiting_;
        waiting_max_ = std::max(waiting_max_, waiting_);
      }
      while (waiting_ > 0) {
        // If equal events wait, it has no effect which of two nodes takes the first one.
        doubtful_ = slack_ != 0 && !(equal_ && waiting_ > 1) && depends_on_slack(time);
        const std::uint32_t node =
            assigner_.from(assigner_.first([&](std::uint32_t nodes) { return choice_.below(nodes); }));
        if (node == dispatch::Assigner::kNone) break;
        assigner_.took(node);
        change(node, 1);
        --waiting_;
        ++assigned_;
        assign(time, node, source_.draw_bytes());
      }
    }
  }

  std::uint64_t offered() const { return offered_; }
  std::uint64_t assigned() const { return assigned_; }
  std::uint64_t waiting() const { return waiting_; }
  std::uint64_t waiting_max() const { return waiting_max_; }

 private:
  struct Done {
    Picoseconds time;
    std::uint32_t node;
    auto operator<=>(const Done&) const = default;
  };

  void change(std::uint32_t node, std::int32_t by) {
    load_[node] += static_cast<std::uint32_t>(by);
    assigner_.set(node, load_[node], load_[node] < limit_);
  }

  /// True if the choice would change if all nodes that finish within the slack had finished, or none of them.
  bool depends_on_slack(Picoseconds time) {
    std::erase_if(lately_, [&](const Done& done) { return done.time + slack_ < time; });
    if (assignment_ != Assignment::least_loaded && limit_ == UINT32_MAX) return false;
    Random ahead = choice_;
    const std::uint32_t first = assigner_.first([&](std::uint32_t nodes) { return ahead.below(nodes); });
    const std::uint32_t chosen = assigner_.from(first);
    for (const Done& done : lately_) change(done.node, 1);
    const bool depends_on_past = !lately_.empty() && assigner_.from(first) != chosen;
    for (const Done& done : lately_) change(done.node, -1);
    if (depends_on_past) return true;
    std::uint32_t soon = 0;
    for (const Done& done : done_) {
      if (done.time < time + slack_) ++soon, change(done.node, -1);
    }
    const bool depends_on_future = soon != 0 && assigner_.from(first) != chosen;
    for (const Done& done : done_) {
      if (done.time < time + slack_) change(done.node, 1);
    }
    return depends_on_future;
  }

  EventSource source_;
  const Assignment assignment_;
  const std::uint32_t limit_;
  const bool equal_;                 ///< all events have one size
  std::vector<std::uint32_t> load_;  // unprocessed events of each node
  dispatch::Assigner assigner_;
  Random choice_;
  std::vector<Done> done_;  // a heap
  Picoseconds slack_ = 0;
  bool doubtful_ = false;
  std::vector<Done> lately_;  // nodes that finished within the slack, if it is not 0
  std::uint64_t waiting_ = 0;
  std::uint64_t waiting_max_ = 0;
  std::uint64_t offered_ = 0;
  std::uint64_t assigned_ = 0;
};

}  // namespace rodeo::network
