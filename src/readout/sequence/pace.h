// How far the links of one reader have come, how far they are apart when they are read, and after which silence a link's place is lost.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rodeo/ids.h"

namespace rodeo::readout {

/// Of one reader; its thread alone. Links that are read in turn are apart by what each brings at once. That is learnt here.
class Pace {
 public:
  /// `period`: of the links' ids.
  explicit Pace(std::uint64_t period) : quarter_(period / 4), limit_(quarter_) {}

  /// The first number that no link of the reader has come to; 0 before the first.
  Sequence head() const { return head_; }
  void raise(Sequence head) { head_ = std::max(head_, head); }
  /// `base`: where its segment begins.
  void raise(Sequence head, Sequence base) {
    if (head <= head_) return;
    head_ = head;
    base_ = base;
  }
  /// So far the reader's own links have come.
  void come(Sequence head, Sequence base) {
    came_ = std::max(came_, head);
    raise(head, base);
  }
  Sequence came() const { return came_; }

  /// A link brought `first` while the foremost was at `head`. Numbers between two segments are no events: a link that has still to come to the
  /// segment of the foremost is behind by what the foremost has brought of it, at least.
  void note(Sequence head, Sequence first) {
    const Sequence from = std::max(first, base_);
    if (head > from + skew_) [[unlikely]]
      learn(head - from);
  }

  /// Events in which a link may bring nothing without losing its place: a quarter of the period, or twice what links are apart by.
  std::uint64_t limit() const { return limit_; }

  /// Links are apart by less than a quarter of this period, so that one of them tells where another is.
  bool tells(std::uint64_t period) const { return skew_ < std::min(4 * quarter_, period) / 4; }

  /// Nothing is to be read: what was learnt fades.
  void fade() { learn(skew_ - (skew_ + 255) / 256); }

 private:
  // Beyond three quarters of a period a silence would go unseen.
  void learn(std::uint64_t skew) {
    skew_ = skew;
    limit_ = std::max(quarter_, std::min(2 * skew_, 3 * quarter_));
  }

  std::uint64_t quarter_;
  std::uint64_t limit_;
  std::uint64_t skew_ = 0;
  Sequence head_ = 0;
  Sequence base_ = 0;
  Sequence came_ = 0;
};

}  // namespace rodeo::readout
