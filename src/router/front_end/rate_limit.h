// Limits the bytes per second to one link.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rodeo::router {

/// A bucket that fills at the rate and holds a burst. A message may take more than the bucket contains, so that messages of
/// any size pass; the next one waits until the debt is paid. Time is an argument; one thread.
class RateLimit {
 public:
  RateLimit(double bytes_per_second, double burst_bytes)
      : bytes_per_ns_(bytes_per_second * 1e-9), burst_(burst_bytes), left_(burst_bytes) {}

  /// Counts a message. False: the message must wait; call try_acquire() again later.
  bool try_acquire(double bytes, std::uint64_t now_ns) {
    if (seen_ns_ != 0 && now_ns > seen_ns_)
      left_ = std::min(burst_, left_ + static_cast<double>(now_ns - seen_ns_) * bytes_per_ns_);
    seen_ns_ = std::max(seen_ns_, now_ns);
    if (left_ <= 0) return false;
    left_ -= bytes;
    return true;
  }

 private:
  double bytes_per_ns_;
  double burst_;
  double left_;
  std::uint64_t seen_ns_ = 0;
};

}  // namespace rodeo::router
