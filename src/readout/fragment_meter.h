// The head of every consumer list. Counts the fragments that builders push, and measures the time since their last data
// arrived. It forwards at insertion, on the builder's thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/latency_histogram.h"
#include "rodeo/consumer.h"

namespace rodeo::readout {

class FragmentMeter final : public FragmentConsumer {
 public:
  void insert(FragmentPtr fragment) override {
    Lane& lane = lanes_[lane_of_thread()];
    lane.count.fetch_add(1, std::memory_order_relaxed);
    // The latency of an incomplete fragment is its time-out and does not describe this machine.
    if (fragment->missing == 0 && fragment->handed_over_ns != 0) {
      const std::uint64_t now = base::steady_now_ns();
      if (now >= fragment->handed_over_ns) lane.latency.record(now - fragment->handed_over_ns);
    }
    forward(std::move(fragment));
  }

  std::uint64_t fragments() const {
    std::uint64_t sum = 0;
    for (const Lane& lane : lanes_) sum += lane.count.load(std::memory_order_relaxed);
    return sum;
  }

  base::LatencySummary latency() const {
    base::LatencySummary sum;
    for (const Lane& lane : lanes_) lane.latency.add_to(sum);
    return sum;
  }

  Status status() const override {
    Status out;
    out.name = "meter";
    out.consumed = fragments();
    return out;
  }

 private:
  // Builders push from their workers' threads. Each thread has its own lane if there are not more threads than lanes.
  // Threads that share a lane are slower, but lose no count.
  static constexpr std::size_t kLanes = 64;

  struct Lane {
    base::LatencyHistogram latency;
    std::atomic<std::uint64_t> count{0};
  };

  static std::size_t lane_of_thread() {
    static std::atomic<std::size_t> next{0};
    thread_local const std::size_t lane = next.fetch_add(1, std::memory_order_relaxed) % kLanes;
    return lane;
  }

  std::array<Lane, kLanes> lanes_;
};

}  // namespace rodeo::readout
