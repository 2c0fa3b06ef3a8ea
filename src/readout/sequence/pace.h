// How far the links of one reader have come, how far apart they are when they are read, and which silence costs a link its
// place.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rodeo/ids.h"

namespace rodeo::readout {

/// For one reader, in its thread. Links that are read in turn are apart by what each brings at once; this class learns how
/// far.
class Pace {
 public:
  /// `period`: of the links' ids. Ids of fewer than 8 bits come round within one block: no silence costs a link its place.
  explicit Pace(std::uint64_t period) : quarter_(period < 256 ? kNoLimit : period / 4), limit_(quarter_) {}

  /// The first number that neither a link of the reader nor a peer (raise()) has come to; 0 before the first.
  Sequence head() const { return head_; }
  void raise(Sequence head) { head_ = std::max(head_, head); }
  /// `base`: number of index 0 of its segment.
  void raise(Sequence head, Sequence base) {
    if (head <= head_) return;
    head_ = head;
    base_ = base;
  }
  /// The reader's own links have come to `head`.
  void advance_own(Sequence head, Sequence base) {
    own_head_ = std::max(own_head_, head);
    raise(head, base);
  }
  Sequence own_head() const { return own_head_; }

  /// A link came to `now` while the foremost link was at `head`. Numbers between two segments are not events: if the
  /// foremost is in a newer segment, only its events of that segment count.
  void measure_skew(Sequence head, Sequence now) {
    const Sequence from = std::max(now, base_);
    if (head > from + skew_) [[unlikely]]
      set_skew(head - from);
  }

  /// A link may miss this many events without losing its place: a quarter of the period, or twice the distance of links if
  /// that is more.
  std::uint64_t limit() const { return limit_; }
  std::uint64_t quarter() const { return quarter_; }

  /// True if links are apart by less than a quarter of this period. Then one link shows where another is.
  bool resolves(std::uint64_t period) const { return skew_ < std::min(4 * quarter_, period) / 4; }

  /// Call it while there is nothing to read: the learnt distance fades.
  void fade_skew() { set_skew(skew_ - (skew_ + 255) / 256); }

 private:
  static constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 56;

  // With a limit above three quarters of a period, silences would not be noticed.
  void set_skew(std::uint64_t skew) {
    skew_ = skew;
    limit_ = std::max(quarter_, std::min(2 * skew_, 3 * quarter_));
  }

  std::uint64_t quarter_;
  std::uint64_t limit_;
  std::uint64_t skew_ = 0;
  Sequence head_ = 0;
  Sequence base_ = 0;
  Sequence own_head_ = 0;
};

}  // namespace rodeo::readout
