// Latencies in logarithmic bins of 3 %: threads record without a lock; a reader adds up the histograms of all
// threads.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/spsc_ring.h"

namespace rodeo::base {

/// The sum of any number of histograms, and its quantiles.
class LatencySummary {
 public:
  static constexpr unsigned kSubBits = 5;  ///< 32 bins an octave
  static constexpr std::size_t kSub = std::size_t{1} << kSubBits;
  static constexpr unsigned kLargestBits = 40;  ///< 18 minutes; longer ones count in the last bin
  static constexpr std::size_t kBins = (kLargestBits - kSubBits + 1) * kSub;

  /// Values below 32 ns have a bin each; above, the five bits after the leading one choose the bin of an octave.
  static std::size_t bin_of(std::uint64_t ns) {
    if (ns < kSub) return static_cast<std::size_t>(ns);
    const unsigned octave = static_cast<unsigned>(std::bit_width(ns)) - 1 - kSubBits;
    return std::min((octave + 1) * kSub + static_cast<std::size_t>((ns >> octave) - kSub), kBins - 1);
  }

  std::uint64_t count() const { return count_; }
  std::uint64_t max_ns() const { return max_ns_; }

  /// The smallest value that a share (0 to 1) of the recorded values does not exceed, to 3 %; 0 if there are none.
  std::uint64_t percentile_ns(double share) const {
    if (count_ == 0) return 0;
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count_ - 1)) + 1;
    std::uint64_t below = 0;
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      below += bins_[bin];
      if (below >= wanted) return std::min(largest_of(bin), max_ns_);
    }
    return max_ns_;
  }

 private:
  friend class LatencyHistogram;

  static std::uint64_t largest_of(std::size_t bin) {
    if (bin < kSub) return bin;
    const std::size_t octave = bin / kSub - 1;
    return ((std::uint64_t{bin % kSub} + kSub + 1) << octave) - 1;
  }

  std::array<std::uint64_t, kBins> bins_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ns_ = 0;
};

/// Latencies, preferably of one thread: several threads may record(), but slow each other down. Any thread may add_to(); 9
/// KiB.
class alignas(kCacheLine) LatencyHistogram {
 public:
  void record(std::uint64_t ns) {
    bins_[LatencySummary::bin_of(ns)].fetch_add(1, std::memory_order_relaxed);
    std::uint64_t largest = max_ns_.load(std::memory_order_relaxed);
    while (ns > largest && !max_ns_.compare_exchange_weak(largest, ns, std::memory_order_relaxed)) {
    }
  }

  /// Records made during the call may be in it or not.
  void add_to(LatencySummary& sum) const {
    for (std::size_t i = 0; i < bins_.size(); ++i) {
      const std::uint64_t n = bins_[i].load(std::memory_order_relaxed);
      sum.bins_[i] += n;
      sum.count_ += n;
    }
    sum.max_ns_ = std::max(sum.max_ns_, max_ns_.load(std::memory_order_relaxed));
  }

 private:
  std::array<std::atomic<std::uint64_t>, LatencySummary::kBins> bins_{};
  std::atomic<std::uint64_t> max_ns_{0};
};

}  // namespace rodeo::base
