// Finds the slot of an event by its id: open addressing in memory of a fixed size.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace rodeo::dispatch {

/// Eight ids that follow each other lie side by side, and share cache lines, since events come nearly in order; eights are scattered, so that what is
/// walked over stays short. Not thread-safe.
class IdTable {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// Room for so many; at most half of the entries are taken then. A call is O(1) but for ids that somebody has chosen for their hashes.
  explicit IdTable(std::uint32_t capacity)
      : entries_(std::bit_ceil(std::uint64_t{2} * (capacity + 1))), mask_(entries_.size() - 1) {}

  std::uint32_t find(std::uint64_t id) const {
    for (std::uint64_t at = home(id); entries_[at].slot != kNone; at = (at + 1) & mask_) {
      if (entries_[at].id == id) return entries_[at].slot;
    }
    return kNone;
  }

  /// The id must not be there, and there must be room.
  void insert(std::uint64_t id, std::uint32_t slot) {
    std::uint64_t at = home(id);
    while (entries_[at].slot != kNone) at = (at + 1) & mask_;
    entries_[at] = {id, slot};
  }

  /// The id must be there. Those behind it move up, so that nothing that was deleted is walked over later.
  void erase(std::uint64_t id) {
    std::uint64_t hole = home(id);
    while (entries_[hole].id != id || entries_[hole].slot == kNone) hole = (hole + 1) & mask_;
    for (std::uint64_t at = (hole + 1) & mask_; entries_[at].slot != kNone; at = (at + 1) & mask_) {
      const std::uint64_t wanted = home(entries_[at].id);
      if (((at - wanted) & mask_) < ((at - hole) & mask_)) continue;  // it lies between its home and the hole
      entries_[hole] = entries_[at];
      hole = at;
    }
    entries_[hole].slot = kNone;
  }

 private:
  struct Entry {
    std::uint64_t id = 0;
    std::uint32_t slot = kNone;
  };

  std::uint64_t home(std::uint64_t id) const { return ((id >> 3) * 0x9e3779b97f4a7c15U >> 29 << 3 | (id & 7)) & mask_; }

  std::vector<Entry> entries_;
  std::uint64_t mask_;
};

}  // namespace rodeo::dispatch
