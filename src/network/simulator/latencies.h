// Latencies of events in logarithmic bins of 0.4 %: copyable, for one thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace rodeo::network {

class Latencies {
 public:
  void record(std::uint64_t ns) {
    ++bins_[bin_of(ns)];
    ++count_;
    max_ns_ = std::max(max_ns_, ns);
  }

  std::uint64_t max_ns() const { return max_ns_; }

  /// The value that a share (0 to 1) of the recorded values does not exceed, to 0.2 %; 0 if there are none.
  std::uint64_t percentile_ns(double share) const {
    if (count_ == 0) return 0;
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count_ - 1)) + 1;
    std::uint64_t below = 0;
    std::size_t bin = 0;
    while ((below += bins_[bin]) < wanted) ++bin;
    return std::min(middle_of(bin), max_ns_);
  }

 private:
  static constexpr unsigned kSubBits = 8;
  static constexpr std::size_t kSub = std::size_t{1} << kSubBits;
  static constexpr unsigned kLargestBits = 47;  // a day and a half; longer ones count in the last bin

  static constexpr std::size_t kBins = (kLargestBits - kSubBits + 1) * kSub;

  /// Values below 256 ns have a bin each; above, the eight bits after the leading one choose the bin of an octave.
  static std::size_t bin_of(std::uint64_t ns) {
    if (ns < kSub) return static_cast<std::size_t>(ns);
    const unsigned octave = static_cast<unsigned>(std::bit_width(ns)) - 1 - kSubBits;
    return std::min((octave + 1) * kSub + static_cast<std::size_t>((ns >> octave) - kSub), kBins - 1);
  }
  static std::uint64_t middle_of(std::size_t bin) {
    if (bin < kSub) return bin;
    const std::size_t octave = bin / kSub - 1;
    return ((bin % kSub + kSub) << octave) + (std::uint64_t{1} << octave) / 2;
  }

  std::array<std::uint32_t, kBins> bins_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ns_ = 0;
};

}  // namespace rodeo::network
