// Which node gets the next event: the least loaded, the next one round the ring, or any; never one that has no room.
#pragma once

#include <cstdint>
#include <vector>

namespace rodeo::dispatch {

enum class Policy : std::uint8_t { least_loaded, round_robin, random };

/// Nodes by number, and how many events each has; O(log nodes) a call, nothing is allocated but by resize(). Not thread-safe.
class NodeChoice {
 public:
  static constexpr std::uint32_t kFull = UINT32_MAX;  ///< a load: it takes none
  static constexpr std::uint32_t kNone = UINT32_MAX;  ///< a node: there is none

  explicit NodeChoice(std::uint32_t nodes = 0) { resize(nodes); }

  /// New ones are full. There are never fewer than before.
  void resize(std::uint32_t nodes);
  std::uint32_t nodes() const { return nodes_; }

  void set_load(std::uint32_t node, std::uint32_t load);
  /// As it was set last.
  std::uint32_t load(std::uint32_t node) const { return tree_[leaves_ + node]; }
  /// Somebody takes one.
  bool any() const { return tree_[1] != kFull; }

  /// The first node from `first` on, round the ring, that has room; kNone if nobody has.
  std::uint32_t next_with_room(std::uint32_t first) const { return from(first, kFull - 1); }
  /// Of the nodes with the least load the first from `first` on, round the ring; kNone if nobody has room.
  std::uint32_t least_loaded(std::uint32_t first) const { return from(first, tree_[1]); }

 private:
  std::uint32_t from(std::uint32_t first, std::uint32_t most) const;
  std::uint32_t right_of(std::uint32_t first, std::uint32_t most) const;

  std::uint32_t nodes_ = 0;
  std::uint32_t leaves_ = 1;
  std::vector<std::uint32_t> tree_ = {0, kFull};  // each the least of its two below; leaves from leaves_ on
};

}  // namespace rodeo::dispatch
