// Chooses the node of the next event: the least loaded, the next in the ring, or any; never a node without room.
#pragma once

#include <cstdint>
#include <vector>

namespace rodeo::dispatch {

enum class Policy : std::uint8_t { least_loaded, round_robin, random };

/// Nodes by number, with the number of events of each. O(log nodes) per call; only resize() allocates. Not thread-safe.
class NodeChoice {
 public:
  static constexpr std::uint32_t kFull = UINT32_MAX;  ///< Load of a node without room.
  static constexpr std::uint32_t kNone = UINT32_MAX;  ///< No node.

  explicit NodeChoice(std::uint32_t nodes = 0) { resize(nodes); }

  /// New nodes are full. The number never decreases.
  void resize(std::uint32_t nodes);
  std::uint32_t nodes() const { return nodes_; }

  void set_load(std::uint32_t node, std::uint32_t load);
  /// The load that was set last.
  std::uint32_t load(std::uint32_t node) const { return tree_[leaves_ + node]; }
  /// True if some node has room.
  bool any() const { return tree_[1] != kFull; }

  /// The first node with room from `first` on, around the ring; kNone if no node has room.
  std::uint32_t next_with_room(std::uint32_t first) const { return search(first, kFull - 1); }
  /// The first of the least loaded nodes from `first` on, around the ring; kNone if no node has room.
  std::uint32_t least_loaded(std::uint32_t first) const { return search(first, tree_[1]); }

 private:
  std::uint32_t search(std::uint32_t first, std::uint32_t most) const;
  std::uint32_t leaf_from(std::uint32_t first, std::uint32_t most) const;

  std::uint32_t nodes_ = 0;
  std::uint32_t leaves_ = 1;
  std::vector<std::uint32_t> tree_ = {0, kFull};  // Each entry is the minimum of its two children; leaves begin at leaves_.
};

}  // namespace rodeo::dispatch
