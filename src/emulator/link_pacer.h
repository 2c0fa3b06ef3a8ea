// Wire speed: the amount of data that each link could have carried by now.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rodeo::emulator {

/// Lanes (links, or E-links) of one speed. A free lane may take data, and is then occupied for their transmission time. An
/// idle lane catches up with at most ten milliseconds, so that a caller that polls rarely loses no capacity. Time is an
/// argument (steady nanoseconds). For one thread.
class LinkPacer {
 public:
  /// Bytes per second of each lane; 0: lanes are never occupied.
  LinkPacer(double bytes_per_second, std::size_t lanes)
      : ns_per_byte_(bytes_per_second > 0 ? 1e9 / bytes_per_second : 0), lanes_(bytes_per_second > 0 ? lanes : 0) {}

  bool paced() const { return ns_per_byte_ > 0; }

  bool is_free(std::size_t lane, std::uint64_t now_ns) const {
    return !paced() || lanes_[lane].free_at_ns <= static_cast<double>(now_ns);
  }
  /// The number of pieces of this size that every lane can take now: one if it is free, plus those that it can catch up
  /// with.
  std::uint64_t most(std::uint64_t now_ns, double bytes_each) const {
    const auto now = static_cast<double>(now_ns);
    double slowest = now - kCatchUpNs;
    for (const Lane& lane : lanes_) slowest = std::max(slowest, lane.free_at_ns);
    if (slowest > now) return 0;
    return 1 + static_cast<std::uint64_t>((now - slowest) / std::max(bytes_each * ns_per_byte_, 1.0));
  }
  void carry(std::size_t lane, std::uint64_t now_ns, double bytes) {
    Lane& one = lanes_[lane];
    const double takes = bytes * ns_per_byte_;
    one.free_at_ns = std::max(one.free_at_ns, static_cast<double>(now_ns) - kCatchUpNs) + takes;
    one.occupied_ns += takes;
  }
  /// The occupied time of the busiest lane.
  std::uint64_t occupied_us() const {
    double most = 0;
    for (const Lane& lane : lanes_) most = std::max(most, lane.occupied_ns);
    return static_cast<std::uint64_t>(most / 1000);
  }

 private:
  static constexpr double kCatchUpNs = 10e6;
  struct Lane {
    double free_at_ns = 0;
    double occupied_ns = 0;
  };
  double ns_per_byte_;
  std::vector<Lane> lanes_;
};

}  // namespace rodeo::emulator
