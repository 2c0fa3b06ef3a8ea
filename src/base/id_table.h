// IdTable: the place of each id, of a fixed number of ids at most.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rodeo::base {

/// For ids that come nearly in order: eight that follow each other lie side by side, and share cache lines; eights are scattered, so that no long rows meet.
constexpr std::uint64_t scattered_eights(std::uint64_t id) { return (id >> 3) * 0x9e3779b97f4a7c15U >> 29 << 3 | (id & 7); }

/// Open addressing, at most half full, without tombstones; who is further from home stands first (Robin Hood), so that a search ends where it cannot be any
/// more, and what is taken out of a long row of neighbours moves none of them. A call is O(1) but for ids that somebody has chosen for their hashes.
/// `Hash`: callable, (Id) -> std::uint64_t, whose lowest bits say where an id is at home.
/// Not thread-safe.
template <typename Id, typename Hash>
class IdTable {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  explicit IdTable(std::size_t most) : cells_(std::bit_ceil(2 * most + 2)), mask_(cells_.size() - 1), most_(most) {}

  std::size_t size() const { return size_; }

  /// kNone: it is not there.
  std::uint32_t find(Id id) const {
    const std::size_t at = place_of(id);
    return at == kNowhere ? kNone : cells_[at].place;
  }

  /// It is not there, and there are fewer than `most`.
  void insert(Id id, std::uint32_t place) {
    assert(size_ < most_ && place != kNone);
    Cell cell{id, place};
    std::size_t at = home(id);
    for (std::size_t distance = 0; cells_[at].place != kNone; at = (at + 1) & mask_, ++distance) {
      const std::size_t other = distance_at(at);
      if (other >= distance) continue;
      std::swap(cell, cells_[at]);
      distance = other;
    }
    cells_[at] = cell;
    ++size_;
  }

  /// False: it was not there.
  bool erase(Id id) {
    std::size_t gap = place_of(id);
    if (gap == kNowhere) return false;
    for (std::size_t at = (gap + 1) & mask_; cells_[at].place != kNone && distance_at(at) != 0; at = (at + 1) & mask_) {
      cells_[gap] = cells_[at];
      gap = at;
    }
    cells_[gap].place = kNone;
    --size_;
    return true;
  }

 private:
  struct Cell {
    Id id{};
    std::uint32_t place = kNone;
  };

  static constexpr std::size_t kNowhere = ~std::size_t{0};

  std::size_t place_of(Id id) const {
    std::size_t at = home(id);
    for (std::size_t distance = 0; cells_[at].place != kNone; at = (at + 1) & mask_, ++distance) {
      if (cells_[at].id == id) return at;
      if (distance_at(at) < distance) break;
    }
    return kNowhere;
  }
  std::size_t distance_at(std::size_t at) const { return (at - home(cells_[at].id)) & mask_; }
  std::size_t home(Id id) const { return Hash{}(id)&mask_; }

  std::vector<Cell> cells_;
  std::size_t mask_;
  std::size_t most_;
  std::size_t size_ = 0;
};

}  // namespace rodeo::base
