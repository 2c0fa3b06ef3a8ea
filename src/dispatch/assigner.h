// Who gets the next event: nodes with their loads and free slots, a policy, and whose turn it is.
#pragma once

#include <cstdint>

#include "dispatch/node_choice.h"

namespace rodeo::dispatch {

/// What the farm's supervisor, the simulator's and the laboratory's decide with. Not thread-safe; O(log nodes) a call.
class Assigner {
 public:
  static constexpr std::uint32_t kNone = NodeChoice::kNone;

  explicit Assigner(Policy policy, std::uint32_t nodes = 0) : policy_(policy), choice_(nodes) {}

  std::uint32_t nodes() const { return choice_.nodes(); }
  /// New nodes have no room.
  void resize(std::uint32_t nodes) { choice_.resize(nodes); }
  /// A node has so many events and takes more, or does not.
  void set(std::uint32_t node, std::uint32_t load, bool has_room) {
    choice_.set_load(node, has_room ? load : NodeChoice::kFull);
  }
  bool any_room() const { return choice_.any(); }

  /// From where the next node is looked for; `draw(nodes)` gives a number below that, and is asked by the random policy alone.
  template <typename Draw>
  std::uint32_t first(Draw&& draw) const {
    return policy_ == Policy::random && nodes() > 0 ? static_cast<std::uint32_t>(draw(nodes())) : turn_;
  }
  /// Who would get an event then; kNone if nobody has room.
  std::uint32_t from(std::uint32_t first) const {
    return policy_ == Policy::least_loaded ? choice_.least_loaded(first) : choice_.next_with_room(first);
  }
  /// That node has got it: the next one in turn is that behind it.
  void took(std::uint32_t node) { turn_ = node + 1 >= nodes() ? 0 : node + 1; }

 private:
  Policy policy_;
  NodeChoice choice_;
  std::uint32_t turn_ = 0;
};

}  // namespace rodeo::dispatch
