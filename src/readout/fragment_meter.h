// The head of every consumer list: counts the fragments that the builders push and how long each took since its last data
// arrived. It forwards at insertion, on the builder's thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/spsc_ring.h"
#include "readout/latency_histogram.h"
#include "rodeo/consumer.h"

namespace rodeo::readout {

class FragmentMeter final : public FragmentConsumer {
 public:
  void insert(FragmentPtr fragment) override {
    count_.fetch_add(1, std::memory_order_relaxed);
    // The latency of an incomplete event is its time-out, which says nothing about this machine.
    if (fragment->missing == 0 && fragment->handed_over_ns != 0) {
      const std::uint64_t now = base::steady_now_ns();
      if (now >= fragment->handed_over_ns) latency_.record(now - fragment->handed_over_ns);
    }
    forward(std::move(fragment));
  }

  std::uint64_t fragments() const { return count_.load(std::memory_order_relaxed); }
  LatencySummary latency() const { return latency_.summary(); }

  Status status() const override {
    Status out;
    out.name = "meter";
    out.consumed = fragments();
    return out;
  }

 private:
  alignas(base::kCacheLine) std::atomic<std::uint64_t> count_{0};
  LatencyHistogram latency_;
};

}  // namespace rodeo::readout
