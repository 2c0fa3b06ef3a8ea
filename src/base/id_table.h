// IdTable: the place of each id; the largest number of ids is fixed.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rodeo::base {

/// Open addressing, at most half full, without tombstones. Entries further from their home slot stand first (Robin Hood), so
/// a search ends early. Ids come nearly in order: groups of sixteen consecutive ids lie side by side, and the golden ratio
/// spreads the groups evenly over the table, so that series of ids do not collide, wherever a counter restarts. A call is
/// O(1), except for ids chosen to collide. `Id`: an unsigned number, or a type with one as `value`. Not thread-safe.
template <typename Id>
class IdTable {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  explicit IdTable(std::size_t most)
      : cells_(std::max(std::bit_ceil(2 * most + 2), 2 * kTogether)),
        mask_(cells_.size() - 1),
        shift_(64 - std::countr_zero(cells_.size() / kTogether)),
        most_(most) {}

  std::size_t size() const { return size_; }
  void clear() {
    std::ranges::fill(cells_, Cell{});
    size_ = 0;
  }

  /// kNone: the id is not in the table.
  std::uint32_t find(Id id) const {
    const std::size_t at = place_of(id);
    return at == kNowhere ? kNone : cells_[at].place;
  }

  /// The id must not be in the table, and the table must hold fewer than `most` ids.
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

  /// False: the id was not in the table.
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

  static constexpr std::size_t kTogether = 16;
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
  std::size_t home(Id id) const {
    const std::uint64_t number = number_of(id);
    return (number / kTogether * 0x9e3779b97f4a7c15U >> shift_) * kTogether + number % kTogether;
  }
  static std::uint64_t number_of(Id id) {
    if constexpr (std::unsigned_integral<Id>) {
      return id;
    } else {
      return id.value;
    }
  }

  std::vector<Cell> cells_;
  std::size_t mask_;
  int shift_;
  std::size_t most_;
  std::size_t size_ = 0;
};

}  // namespace rodeo::base
