// The ids that a recorder has. There are millions of them, and neighbouring ids arrive at about the same time.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace rodeo::farm {

/// Has a bitmap for each 4096 neighbours with at least one id: 13 bytes per id if one id in a hundred is recorded. One
/// thread.
class SparseIdSet {
 public:
  /// False: the set has the id already.
  bool add(std::uint64_t id) {
    auto& block = block_of(id);
    const bool added = !block[id % kBlock];
    block.set(id % kBlock);
    size_ += added ? 1 : 0;
    return added;
  }

  bool contains(std::uint64_t id) const {
    const auto found = blocks_.find(id / kBlock);
    return found != blocks_.end() && (*found->second)[id % kBlock];
  }

  std::uint64_t size() const { return size_; }

 private:
  static constexpr std::uint64_t kBlock = 4096;
  using Block = std::bitset<kBlock>;

  Block& block_of(std::uint64_t id) {
    if (last_ != nullptr && last_number_ == id / kBlock) return *last_;
    auto& block = blocks_[id / kBlock];
    if (block == nullptr) block = std::make_unique<Block>();
    last_number_ = id / kBlock;
    return *(last_ = block.get());
  }

  std::unordered_map<std::uint64_t, std::unique_ptr<Block>> blocks_;
  Block* last_ = nullptr;
  std::uint64_t last_number_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace rodeo::farm
