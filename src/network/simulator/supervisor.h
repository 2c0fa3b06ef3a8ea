// Which node gets an event: the supervisor of one rack.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "network/simulator/event_source.h"

namespace rodeo::network {

class Supervisor {
 public:
  Supervisor(const Topology& topology, const Traffic& traffic, std::uint32_t rack, std::uint64_t seed)
      : source_(topology, traffic, rack, seed),
        assignment_(traffic.assignment),
        limit_(traffic.events_in_flight == 0 ? UINT32_MAX : traffic.events_in_flight),
        load_(topology.nodes / topology.racks, 0),
        choice_(seed, 4 * rack + 2) {}

  /// A node (of this rack) will have room again at that time.
  void finish(Picoseconds time, std::uint32_t node) {
    done_.push_back({time, node});
    std::push_heap(done_.begin(), done_.end(), std::greater<>());
  }

  Picoseconds next_time() const { return std::min(source_.next_time(), done_.empty() ? kNever : done_.front().time); }

  /// Everything before `end`, in order: calls assign(time, node, event bytes). A node that finishes comes before an event of that time.
  template <typename Assign>
  void advance(Picoseconds end, Assign&& assign) {
    for (;;) {
      const Picoseconds time = next_time();
      if (time >= end) return;
      if (!done_.empty() && done_.front().time == time) {
        std::pop_heap(done_.begin(), done_.end(), std::greater<>());
        --load_[done_.back().node];
        done_.pop_back();
      } else {
        source_.pop();
        ++offered_;
        ++waiting_;
        waiting_max_ = std::max(waiting_max_, waiting_);
      }
      while (waiting_ > 0) {
        const std::uint32_t node = choose();
        if (node == load_.size()) break;
        ++load_[node];
        --waiting_;
        ++assigned_;
        assign(time, node, source_.draw_bytes());
      }
    }
  }

  std::uint64_t offered() const { return offered_; }
  std::uint64_t assigned() const { return assigned_; }
  std::uint64_t waiting_max() const { return waiting_max_; }

 private:
  struct Done {
    Picoseconds time;
    std::uint32_t node;
    auto operator<=>(const Done&) const = default;
  };

  /// A node with room, or load_.size().
  std::uint32_t choose() {
    const auto nodes = static_cast<std::uint32_t>(load_.size());
    std::uint32_t node = turn_;
    if (assignment_ == Assignment::random) node = static_cast<std::uint32_t>(choice_.below(nodes));
    std::uint32_t best = nodes;
    for (std::uint32_t tried = 0; tried < nodes; ++tried) {
      if (load_[node] < limit_ && (best == nodes || load_[node] < load_[best])) {
        best = node;
        if (assignment_ != Assignment::least_loaded || load_[node] == 0) break;
      }
      if (++node == nodes) node = 0;
    }
    if (best != nodes) turn_ = best + 1 == nodes ? 0 : best + 1;
    return best;
  }

  EventSource source_;
  const Assignment assignment_;
  const std::uint32_t limit_;
  std::vector<std::uint32_t> load_;  // events of each node that are not processed
  Random choice_;
  std::vector<Done> done_;  // heap
  std::uint32_t turn_ = 0;
  std::uint64_t waiting_ = 0;
  std::uint64_t waiting_max_ = 0;
  std::uint64_t offered_ = 0;
  std::uint64_t assigned_ = 0;
};

}  // namespace rodeo::network
