// IdTable: the place of each extended L1 id, of a fixed number at most.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rodeo/ids.h"

namespace rodeo::readout {

/// Open addressing, at most half full, without tombstones; who is further from home stands first (Robin Hood), so that a search ends where it cannot be any
/// more, and what is taken out of a long row of neighbours moves none of them. Ids that follow each other lie side by side, each epoch of the ECR counter
/// somewhere else.
class IdTable {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  explicit IdTable(std::size_t most)
      : mask_(static_cast<std::uint32_t>(std::bit_ceil(2 * most + 2) - 1)),
        shift_(32 - std::popcount(mask_)),
        cells_(std::size_t{mask_} + 1),
        most_(most) {}

  std::size_t size() const { return size_; }

  /// kNone: it is not there.
  std::uint32_t find(L1Id id) const {
    const std::size_t at = place_of(id);
    return at == kNowhere ? kNone : cells_[at].place;
  }

  /// It is not there, and there are fewer than `most`.
  void insert(L1Id id, std::uint32_t place) {
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
  bool erase(L1Id id) {
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
    L1Id id;
    std::uint32_t place = kNone;
  };

  static constexpr std::size_t kNowhere = ~std::size_t{0};

  std::size_t place_of(L1Id id) const {
    std::size_t at = home(id);
    for (std::size_t distance = 0; cells_[at].place != kNone && distance_at(at) >= distance;
         at = (at + 1) & mask_, ++distance) {
      if (cells_[at].id == id) return at;
    }
    return kNowhere;
  }
  std::size_t distance_at(std::size_t at) const { return (at - home(cells_[at].id)) & mask_; }
  std::size_t home(L1Id id) const { return (id.l1() + (id.ecr() * 0x9e3779b1U >> shift_)) & mask_; }

  std::uint32_t mask_;
  int shift_;
  std::vector<Cell> cells_;
  std::size_t most_;
  std::size_t size_ = 0;
};

}  // namespace rodeo::readout
