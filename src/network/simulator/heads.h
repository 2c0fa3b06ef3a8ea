// When each of many queues has something next: one look at a dense array instead of one at every queue, and none while nothing is due.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "network/simulator/time.h"

namespace rodeo::network {

class Heads {
 public:
  explicit Heads(std::size_t queues) : times_(queues, kNever) {}

  Picoseconds operator[](std::size_t queue) const { return times_[queue]; }
  void set(std::size_t queue, Picoseconds time) {
    times_[queue] = time;
    earliest_ = std::min(earliest_, time);
  }
  void lower(std::size_t queue, Picoseconds time) {
    if (time < times_[queue]) set(queue, time);
  }

  /// No queue has anything before.
  Picoseconds earliest() const { return earliest_; }

  /// Calls visit(queue) for all that have something before `end`; it may change that queue's time.
  template <typename Visit>
  void visit_before(Picoseconds end, Visit&& visit) {
    if (earliest_ >= end) return;
    Picoseconds earliest = kNever;
    for (std::size_t queue = 0; queue < times_.size(); ++queue) {
      if (times_[queue] < end) visit(static_cast<std::uint32_t>(queue));
      earliest = std::min(earliest, times_[queue]);
    }
    earliest_ = earliest;
  }

  /// After times have been made later.
  void refresh() { earliest_ = *std::min_element(times_.begin(), times_.end()); }

 private:
  std::vector<Picoseconds> times_;
  Picoseconds earliest_ = kNever;
};

}  // namespace rodeo::network
