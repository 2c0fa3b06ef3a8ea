// The next time of each of many queues, in a dense array: one scan replaces a look at every queue, and no scan is needed
// while nothing is due.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "network/simulator/scan_kernel.h"
#include "network/simulator/time.h"

namespace rodeo::network {

class Heads {
 public:
  explicit Heads(std::size_t queues)
      : kernel_(&scan_kernel(base::cpu_level())),
        times_((queues + kScanStep - 1) / kScanStep * kScanStep, kNever),
        due_(times_.size()) {}

  Picoseconds operator[](std::size_t queue) const { return times_[queue]; }
  void set(std::size_t queue, Picoseconds time) {
    times_[queue] = time;
    earliest_ = std::min(earliest_, time);
  }
  void lower(std::size_t queue, Picoseconds time) {
    if (time < times_[queue]) set(queue, time);
  }

  /// A lower bound: no queue has an entry before it.
  Picoseconds earliest() const { return earliest_; }

  /// Calls visit(queue) for each queue with an entry before `end`; visit may change the queue's time.
  template <typename Visit>
  void visit_before(Picoseconds end, Visit&& visit) {
    if (earliest_ >= end) return;
    const std::size_t due = kernel_->before(times_.data(), times_.size(), end, due_.data());
    for (std::size_t i = 0; i < due; ++i) visit(due_[i]);
    refresh();
  }

  /// Call it after times have become later.
  void refresh() { earliest_ = kernel_->earliest(times_.data(), times_.size()); }

 private:
  const ScanKernel* kernel_;
  std::vector<Picoseconds> times_;
  std::vector<std::uint32_t> due_;
  Picoseconds earliest_ = kNever;
};

}  // namespace rodeo::network
