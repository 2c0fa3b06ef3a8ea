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
    const Sequence number = segment.base + static_cast<Sequence>(place.index);
    if (number < segment.end) return number;
  }
  return std::nullopt;
}

void Segments::open(const Place& lowest, Sequence first) {
  if (!segments_.empty()) segments_.back().end = first;
  if (segments_.size() == most_) segments_.erase(segments_.begin());
  segments_.push_back({lowest.resets, first - static_cast<Sequence>(lowest.index), first, kNoEnd});
}

void Segments::forget(Sequence before) {
  auto keep = segments_.begin();
  while (segments_.end() - keep > 1 && keep->end <= before) ++keep;
  segments_.erase(segments_.begin(), keep);
}

}  // namespace rodeo::readout
