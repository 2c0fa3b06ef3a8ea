// Chooses the node of the next event from the nodes' loads and free slots, by a policy.
#pragma once

#include <cstdint>

#include "dispatch/node_choice.h"

namespace rodeo::dispatch {

/// The supervisors of the farm, the simulator and the laboratory use it. Not thread-safe; O(log nodes) per call.
class Assigner {
 public:
  static constexpr std::uint32_t kNone = NodeChoice::kNone;

  explicit Assigner(Policy policy, std::uint32_t nodes = 0) : policy_(policy), choice_(nodes) {}

  std::uint32_t nodes() const { return choice_.nodes(); }
  /// New nodes have no room.
  void resize(std::uint32_t nodes) { choice_.resize(nodes); }
  /// Sets how many events a node has, and whether it takes more.
  void set(std::uint32_t node, std::uint32_t load, bool has_room) {
    choice_.set_load(node, has_room ? load : NodeChoice::kFull);
  }
  bool any_room() const { return choice_.any(); }

  /// The node at which the search for the next node starts. `draw(nodes)` returns a number below `nodes`; only policy random
  /// uses it.
  template <typename Draw>
  std::uint32_t first(Draw&& draw) const {
    return policy_ == Policy::random && nodes() > 0 ? static_cast<std::uint32_t>(draw(nodes())) : turn_;
  }
  /// The node that a search from node `first` finds; kNone if no node has room.
  std::uint32_t from(std::uint32_t first) const {
    return policy_ == Policy::least_loaded ? choice_.least_loaded(first) : choice_.next_with_room(first);
  }
  /// Says that the node got the event; the node behind it is next in turn.
  void took(std::uint32_t node) { turn_ = node + 1 >= nodes() ? 0 : node + 1; }

 private:
  Policy policy_;
  NodeChoice choice_;
  std::uint32_t turn_ = 0;
};

}  // namespace rodeo::dispatch
