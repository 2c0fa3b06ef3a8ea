// The time limit for the end of a run. First the run ends in order, then the process gives up what waits, at last it aborts.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace rodeo::process {

inline constexpr std::chrono::nanoseconds kStopLimit = std::chrono::seconds{30};

/// Times are steady nanoseconds, read by the caller.
class StopLimit {
 public:
  explicit StopLimit(std::chrono::nanoseconds limit)
      : limit_ns_(static_cast<std::uint64_t>(limit.count())),
        in_order_ns_(static_cast<std::uint64_t>(in_order(limit).count())) {}

  /// The user asked for the end. Further calls change nothing.
  void begin(std::uint64_t now_ns) { begun_ns_ = std::min(begun_ns_, now_ns); }

  /// The part of `limit` in which the run ends in order.
  static constexpr std::chrono::nanoseconds in_order(std::chrono::nanoseconds limit) { return limit - limit / 6; }
  /// True when that part is over: the process gives up what waits, and uses the rest to count it and to close files.
  bool gives_up(std::uint64_t now_ns) const { return spent(now_ns) >= in_order_ns_; }
  /// True when the whole limit is over.
  bool over(std::uint64_t now_ns) const { return spent(now_ns) >= limit_ns_; }

 private:
  std::uint64_t spent(std::uint64_t now_ns) const { return now_ns > begun_ns_ ? now_ns - begun_ns_ : 0; }

  const std::uint64_t limit_ns_;
  const std::uint64_t in_order_ns_;
  std::uint64_t begun_ns_ = ~std::uint64_t{0};
};

}  // namespace rodeo::process
