#include "dispatch/node_choice.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace rodeo::dispatch {

void NodeChoice::resize(std::uint32_t nodes) {
  assert(nodes >= nodes_);
  if (nodes > leaves_) {
    const std::uint32_t leaves = std::bit_ceil(nodes);
    std::vector<std::uint32_t> tree(std::size_t{2} * leaves, kFull);
    std::copy_n(tree_.begin() + leaves_, nodes_, tree.begin() + leaves);
    for (std::uint32_t i = leaves - 1; i > 0; --i) tree[i] = std::min(tree[2 * i], tree[2 * i + 1]);
    tree_ = std::move(tree);
    leaves_ = leaves;
  }
  nodes_ = nodes;
}

void NodeChoice::set_load(std::uint32_t node, std::uint32_t load) {
  std::uint32_t at = leaves_ + node;
  tree_[at] = load;
  while (at > 1) {
    const std::uint32_t least = std::min(tree_[at], tree_[at ^ 1]);
    at /= 2;
    if (tree_[at] == least) return;
    tree_[at] = least;
  }
}

std::uint32_t NodeChoice::search(std::uint32_t first, std::uint32_t most) const {
  if (tree_[1] == kFull) return kNone;
  const std::uint32_t right = first < nodes_ ? leaf_from(first, most) : kNone;
  return right != kNone ? right : leaf_from(0, most);
}

/// The first leaf from `first` on whose load is at most `most`.
std::uint32_t NodeChoice::leaf_from(std::uint32_t first, std::uint32_t most) const {
  std::uint32_t at = leaves_ + first;
  // Climb until the next subtree to the right contains such a leaf.
  while (tree_[at] > most) {
    while ((at & 1) != 0) at /= 2;  // A right child: its parent reaches no further right.
    if (at == 0) return kNone;
    ++at;
  }
  while (at < leaves_) at = tree_[2 * at] <= most ? 2 * at : 2 * at + 1;
  return at - leaves_;
}

}  // namespace rodeo::dispatch
