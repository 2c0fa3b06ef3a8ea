#include "network/simulator/congestion.h"

#include <algorithm>

namespace rodeo::network {

namespace {

constexpr std::uint32_t kBeta = 717;  // 0.7 of 1024
constexpr std::uint32_t kRate = 410;  // C = 0.4 of 1024
constexpr std::uint32_t kHystartLowest = 16;
constexpr std::uint32_t kHystartSamples = 8;
constexpr Picoseconds kMillisecond = 1'000'000'000;
constexpr Picoseconds kAckTrainGap = 2 * kMillisecond;
constexpr Picoseconds kShortestRise = 4 * kMillisecond;
constexpr Picoseconds kLongestRise = 16 * kMillisecond;

/// A time in units of 1/1024 s.
std::uint64_t ticks(Picoseconds time) {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(time) << 10) / kPicosecondsPerSecond);
}

bool after(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) > 0; }

}  // namespace

std::uint32_t cube_root(std::uint64_t value) {
  std::uint64_t root = 0;
  for (int bit = 21; bit >= 0; --bit) {  // 2642245 is the cube root of the largest 64-bit number
    const std::uint64_t trial = root | (std::uint64_t{1} << bit);
    if (static_cast<unsigned __int128>(trial) * trial * trial <= value) root = trial;
  }
  return static_cast<std::uint32_t>(root);
}

void Congestion::grow_by_count(std::uint32_t per_segment, std::uint32_t segments) {
  if (count_ >= per_segment) {  // the period became shorter
    count_ = 0;
    ++window;
  }
  count_ += segments;
  if (count_ >= per_segment) {
    const std::uint32_t more = count_ / per_segment;
    count_ -= more * per_segment;
    window += more;
  }
}

/// Acknowledged segments per segment of growth: RFC 9438, sections 4.2 to 4.5.
std::uint32_t Congestion::cubic_period(Picoseconds now, std::uint32_t segments) {
  reno_count_ += segments;
  if (epoch_start_ == kNever) {
    epoch_start_ = now;
    reno_count_ = segments;
    reno_window_ = window;
    if (plateau_ <= window) {
      to_origin_ = 0;
      origin_ = window;
    } else {
      // K = cbrt((W_max - cwnd) / C), in 1/1024 s: a cubic second has 2^30 of these units.
      to_origin_ = cube_root((static_cast<std::uint64_t>(plateau_ - window) << 40) / kRate);
      origin_ = plateau_;
    }
  }
  const std::uint64_t elapsed = ticks(now - epoch_start_ + (delay_min_ == kNever ? 0 : delay_min_));
  const std::uint64_t distance = elapsed < to_origin_ ? to_origin_ - elapsed : elapsed - to_origin_;
  const auto delta = static_cast<std::uint64_t>(std::min<unsigned __int128>(
      (static_cast<unsigned __int128>(kRate) * distance * distance * distance) >> 40, 0x3fffffff));
  const std::uint64_t target = elapsed < to_origin_ ? origin_ - std::min<std::uint64_t>(delta, origin_) : origin_ + delta;
  std::uint64_t period = target > window ? window / (target - window) : 100ull * window;
  if (plateau_ == 0 && period > 20) period = 20;  // the path is still unknown: grow by 5 % in a round trip
  // Never slower than Reno (section 4.3), which with beta 0.7 needs 8 (1 + beta) / (3 (1 - beta)) / 8 windows for a segment.
  const std::uint32_t scale = 8 * (1024 + kBeta) / 3 / (1024 - kBeta);
  const std::uint32_t reno_period = static_cast<std::uint32_t>((static_cast<std::uint64_t>(window) * scale) >> 3);
  while (reno_period != 0 && reno_count_ > reno_period) {
    reno_count_ -= reno_period;
    ++reno_window_;
  }
  if (reno_window_ > window) period = std::min<std::uint64_t>(period, window / (reno_window_ - window));
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(period, 2));
}

void Congestion::on_acknowledged(const TcpParameters& tcp, Picoseconds now, std::uint32_t segments,
                                 std::uint32_t acknowledged, std::uint32_t sent_end) {
  if (in_slow_start()) {
    if (tcp.control == CongestionControl::cubic && tcp.hystart && after(acknowledged, round_end_))
      start_round(now, sent_end);
    const std::uint32_t grown = std::min(window + segments, threshold);
    segments -= grown - window;
    window = grown;
    if (segments == 0) return;
  }
  if (tcp.control == CongestionControl::cubic) {
    grow_by_count(cubic_period(now, segments), segments);
  } else {
    grow_by_count(window, segments);
  }
}

void Congestion::start_round(Picoseconds now, std::uint32_t sent_end) {
  round_start_ = last_ack_ = now;
  round_end_ = sent_end;
  round_rtt_ = kNever;
  samples_ = 0;
}

void Congestion::on_rtt(const TcpParameters& tcp, Picoseconds now, Picoseconds rtt, std::uint32_t acknowledged,
                        std::uint32_t sent_end) {
  if (tcp.control != CongestionControl::cubic) return;
  delay_min_ = std::min(delay_min_, rtt);
  if (found_ || !in_slow_start() || !tcp.hystart) return;
  if (after(acknowledged, round_end_)) start_round(now, sent_end);
  if (window < kHystartLowest) return;
  if (now - last_ack_ <= kAckTrainGap) {
    // The acknowledgements arrived as a train for half a round trip: the window fills the path.
    last_ack_ = now;
    if (now - round_start_ > delay_min_ / 2) found_ = true;
  }
  round_rtt_ = std::min(round_rtt_, rtt);
  if (samples_ < kHystartSamples) {
    ++samples_;
  } else if (round_rtt_ > delay_min_ + std::clamp(delay_min_ / 8, kShortestRise, kLongestRise)) {
    found_ = true;
  }
  if (found_) threshold = window;
}

std::uint32_t Congestion::threshold_after_loss(const TcpParameters& tcp) {
  if (tcp.control != CongestionControl::cubic) return std::max(window / 2, 2u);
  epoch_start_ = kNever;
  // Fast convergence (section 4.7): a sender with a loss below its last plateau frees bandwidth.
  plateau_ =
      window < plateau_ ? static_cast<std::uint32_t>(static_cast<std::uint64_t>(window) * (1024 + kBeta) / 2048) : window;
  return std::max(static_cast<std::uint32_t>(static_cast<std::uint64_t>(window) * kBeta / 1024), 2u);
}

void Congestion::on_restart(const TcpParameters&, Picoseconds now, Picoseconds idle) {
  if (epoch_start_ != kNever) epoch_start_ = std::min(epoch_start_ + idle, now);
}

void Congestion::on_timeout() {
  count_ = 0;
  epoch_start_ = kNever;
  delay_min_ = kNever;
  plateau_ = origin_ = to_origin_ = reno_window_ = reno_count_ = 0;
  round_rtt_ = kNever;
  samples_ = 0;
  found_ = false;
}

}  // namespace rodeo::network
