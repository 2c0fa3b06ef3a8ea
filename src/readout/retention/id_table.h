// IdTable: the place of each extended L1 id, of a fixed number at most.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rodeo/ids.h"

namespace rodeo::readout {

/// Open addressing, at most half full, without tombstones. Ids that follow each other lie side by side, each epoch of the ECR counter somewhere else.
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
    for (std::size_t at = home(id);; at = (at + 1) & mask_) {
      const Cell& cell = cells_[at];
      if (cell.place == kNone || cell.id == id) return cell.place;
    }
  }

  /// It is not there, and there are fewer than `most`.
  void insert(L1Id id, std::uint32_t place) {
    assert(size_ < most_ && place != kNone);
    std::size_t at = home(id);
    while (cells_[at].place != kNone) at = (at + 1) & mask_;
    cells_[at] = {id, place};
    ++size_;
  }

  /// False: it was not there.
  bool erase(L1Id id) {
    std::size_t gap = home(id);
    while (cells_[gap].place != kNone && cells_[gap].id != id) gap = (gap + 1) & mask_;
    if (cells_[gap].place == kNone) return false;
    // What stands behind the gap moves up to it, unless its home lies behind it.
    for (std::size_t at = (gap + 1) & mask_; cells_[at].place != kNone; at = (at + 1) & mask_) {
      if (((at - home(cells_[at].id)) & mask_) < ((at - gap) & mask_)) continue;
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

  std::size_t home(L1Id id) const { return (id.l1() + (id.ecr() * 0x9e3779b1U >> shift_)) & mask_; }

  std::uint32_t mask_;
  int shift_;
  std::vector<Cell> cells_;
  std::size_t most_;
  std::size_t size_ = 0;
};

}  // namespace rodeo::readout
