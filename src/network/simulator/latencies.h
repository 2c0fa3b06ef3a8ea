// Latencies of events in the bins of base::LatencySummary (3 %), for one thread and to be copied.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/latency_histogram.h"

namespace rodeo::network {

class Latencies {
 public:
  void record(std::uint64_t ns) {
    ++bins_[base::LatencySummary::bin_of(ns)];
    ++count_;
    max_ns_ = std::max(max_ns_, ns);
  }

  std::uint64_t max_ns() const { return max_ns_; }

  /// The smallest value that a share (0 to 1) of them does not exceed, to 3 %; 0 if there are none.
  std::uint64_t percentile_ns(double share) const {
    if (count_ == 0) return 0;
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count_ - 1)) + 1;
    std::uint64_t below = 0;
    for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
      below += bins_[bin];
      if (below >= wanted) return std::min(largest_of(bin), max_ns_);
    }
    return max_ns_;
  }

 private:
  static constexpr std::size_t kSub = base::LatencySummary::kSub;

  static std::uint64_t largest_of(std::size_t bin) {
    if (bin < kSub) return bin;
    return ((std::uint64_t{bin % kSub} + kSub + 1) << (bin / kSub - 1)) - 1;
  }

  std::array<std::uint64_t, base::LatencySummary::kBins> bins_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ns_ = 0;
};

}  // namespace rodeo::network
