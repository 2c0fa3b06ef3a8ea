// Latencies in logarithmic bins of 3 %: recording is one relaxed addition, percentiles are computed by whoever asks.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace rodeo::readout {

struct LatencySummary {
  std::uint64_t count = 0;
  double p50_us = 0;
  double p99_us = 0;
  double max_us = 0;
};

class LatencyHistogram {
 public:
  /// Any thread; never blocks.
  void record(std::uint64_t ns) {
    bins_[bin_of(ns)].fetch_add(1, std::memory_order_relaxed);
    std::uint64_t seen = max_ns_.load(std::memory_order_relaxed);
    while (ns > seen && !max_ns_.compare_exchange_weak(seen, ns, std::memory_order_relaxed)) {
    }
  }

  /// Any thread; consistent to within what is being recorded meanwhile.
  LatencySummary summary() const {
    LatencySummary out;
    for (const auto& bin : bins_) out.count += bin.load(std::memory_order_relaxed);
    const std::uint64_t max_ns = max_ns_.load(std::memory_order_relaxed);
    out.max_us = static_cast<double>(max_ns) * 1e-3;
    out.p50_us = percentile_us(out.count, 0.50, max_ns);
    out.p99_us = percentile_us(out.count, 0.99, max_ns);
    return out;
  }

 private:
  static constexpr unsigned kSubBits = 5;  // 32 bins per octave
  static constexpr std::size_t kSub = std::size_t{1} << kSubBits;
  static constexpr std::size_t kBins = (64 - kSubBits + 1) * kSub;

  /// Values below 32 ns have a bin each; above, the five bits after the leading one choose the bin of an octave.
  static std::size_t bin_of(std::uint64_t ns) {
    if (ns < kSub) return static_cast<std::size_t>(ns);
    const unsigned octave = static_cast<unsigned>(std::bit_width(ns)) - 1 - kSubBits;
    return (octave + 1) * kSub + static_cast<std::size_t>((ns >> octave) - kSub);
  }

  static double upper_edge_ns(std::size_t bin) {
    if (bin < kSub) return static_cast<double>(bin);
    const std::size_t octave = bin / kSub - 1;
    return static_cast<double>(bin % kSub + kSub + 1) * static_cast<double>(std::uint64_t{1} << octave);
  }

  double percentile_us(std::uint64_t count, double share, std::uint64_t max_ns) const {
    if (count == 0) return 0;
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count - 1)) + 1;
    std::uint64_t below = 0;
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      below += bins_[bin].load(std::memory_order_relaxed);
      if (below >= wanted) return std::min(upper_edge_ns(bin), static_cast<double>(max_ns)) * 1e-3;
    }
    return static_cast<double>(max_ns) * 1e-3;
  }

  std::array<std::atomic<std::uint64_t>, kBins> bins_{};
  std::atomic<std::uint64_t> max_ns_{0};
};

}  // namespace rodeo::readout
