#include "readout/sequence/segments.h"

#include <algorithm>

namespace rodeo::readout {

std::size_t Segments::find(Sequence number) const {
  const auto beyond = std::upper_bound(segments_.begin(), segments_.end(), number,
                                       [](Sequence value, const Segment& segment) { return value < segment.first; });
  return beyond == segments_.begin() ? 0 : static_cast<std::size_t>(beyond - segments_.begin()) - 1;
}

std::optional<Sequence> Segments::number(const Place& place) const {
  for (std::size_t i = segments_.size(); i-- > 0;) {
    const Segment& segment = segments_[i];
    if (segment.resets != place.resets || place < segment.place(segment.first)) continue;
    // Of two segments with the same resets, the newer one has the places from its first on, even when it is over.
    const Sequence number = segment.base + static_cast<Sequence>(place.index);
    return number < segment.end ? std::optional(number) : std::nullopt;
  }
  return std::nullopt;
}

void Segments::open(const Place& lowest, const Place& brought, Sequence first, Sequence arrived_end) {
  std::uint64_t behind = 0;  // above all global ids of the segment that ends
  if (!segments_.empty()) {
    Segment& last = segments_.back();
    last.end = first;
    const Sequence end = std::clamp(arrived_end, last.first, first);
    if (lowest.resets != last.resets)
      wraps_ += static_cast<std::uint64_t>(ids_.wraps(std::max<std::int64_t>(last.index(end) - 1, 0)));
    behind = last.global_id(end);
  }
  segments_.push_back({.resets = lowest.resets,
                       .base = first - static_cast<Sequence>(lowest.index),
                       .first = first,
                       .rounds = rounds_of(brought, behind),
                       .ids = ids_});
  if (segments_.size() > most_) segments_.erase(segments_.begin());
}

// The resets plus the wraps. If a counter goes back to ids of the run (a front end was restarted), wraps are added until its
// ids are new. If it comes back from ids ahead of the run, where a wrong reset counter led it, no wrap is added.
std::uint64_t Segments::rounds_of(const Place& brought, std::uint64_t behind) {
  const std::uint64_t resets = brought.resets < kResetsOrigin ? brought.resets : brought.resets - kResetsOrigin;
  const std::uint64_t id = ids_.global_id(resets + wraps_, brought.index);
  if (id < used_ids_end_) {
    used_ids_end_ = std::max(used_ids_end_, behind);
    wraps_ += ((used_ids_end_ - 1) >> ids_.counter_bits()) + 1 - (id >> ids_.counter_bits());
  } else if (id >= behind) {
    used_ids_end_ = std::max(used_ids_end_, behind);
  }
  return resets + wraps_;
}

void Segments::forget(Sequence before) {
  auto keep = segments_.begin();
  while (segments_.end() - keep > 1 && keep->end <= before) ++keep;
  segments_.erase(segments_.begin(), keep);
}

}  // namespace rodeo::readout
