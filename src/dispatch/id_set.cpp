#include "dispatch/id_set.h"

#include <algorithm>

namespace rodeo::dispatch {

void make_id_set(std::span<std::uint64_t> ids, IdSet& out) {
  out.ranges.clear();
  out.bitmaps.clear();
  std::ranges::sort(ids);
  const std::span<const std::uint64_t> all = ids.first(ids.size() - std::ranges::unique(ids).size());
  for (std::size_t i = 0; i < all.size();) {
    const std::uint64_t first = all[i];
    std::size_t run = i + 1;
    while (run < all.size() && all[run] == first + (run - i)) ++run;
    std::size_t near = i;
    std::uint64_t bits = 0;
    for (; near < all.size() && all[near] - first < 64; ++near) bits |= std::uint64_t{1} << (all[near] - first);
    if (run >= near) {
      out.ranges.push_back({first, static_cast<std::uint32_t>(run - i)});
      i = run;
    } else {
      out.bitmaps.push_back({first, bits});
      i = near;
    }
  }
}

}  // namespace rodeo::dispatch
