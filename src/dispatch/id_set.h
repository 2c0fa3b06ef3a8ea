// Ids as ranges and bitmaps: a compact list of events for readouts to clear.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rodeo::dispatch {

/// Global ids.
struct IdSet {
  struct Range {
    std::uint64_t first = 0;
    std::uint32_t count = 0;
    bool operator==(const Range&) const = default;
  };
  struct Bitmap {
    std::uint64_t first = 0;
    std::uint64_t bits = 0;  ///< Bit i: the id first + i.
    bool operator==(const Bitmap&) const = default;
  };
  std::vector<Range> ranges;
  std::vector<Bitmap> bitmaps;

  bool operator==(const IdSet&) const = default;
};

/// Makes a set of ids in any order, repeated or not. Sorts `ids` in place. `out` keeps its memory.
void make_id_set(std::span<std::uint64_t> ids, IdSet& out);

}  // namespace rodeo::dispatch
