// How long the end of a run may take: in order at first, then what waits is given up, and at last nothing is waited for.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace rodeo::process {

inline constexpr std::chrono::nanoseconds kStopLimit = std::chrono::seconds{30};

/// Times are steady nanoseconds that the caller has read.
class StopLimit {
 public:
  explicit StopLimit(std::chrono::nanoseconds limit)
      : limit_ns_(static_cast<std::uint64_t>(limit.count())),
        in_order_ns_(static_cast<std::uint64_t>(in_order(limit).count())) {}

  /// The end was asked for. Again changes nothing.
  void begin(std::uint64_t now_ns) { begun_ns_ = std::min(begun_ns_, now_ns); }

  /// Of the end: so long it goes in order.
  static constexpr std::chrono::nanoseconds in_order(std::chrono::nanoseconds limit) { return limit - limit / 6; }
  /// That is over: what still waits is given up, so that there is time left to count it and to close files.
  bool gives_up(std::uint64_t now_ns) const { return spent(now_ns) >= in_order_ns_; }
  /// All of it is over.
  bool over(std::uint64_t now_ns) const { return spent(now_ns) >= limit_ns_; }

 private:
  std::uint64_t spent(std::uint64_t now_ns) const { return now_ns > begun_ns_ ? now_ns - begun_ns_ : 0; }

  const std::uint64_t limit_ns_;
  const std::uint64_t in_order_ns_;
  std::uint64_t begun_ns_ = ~std::uint64_t{0};
};

}  // namespace rodeo::process
