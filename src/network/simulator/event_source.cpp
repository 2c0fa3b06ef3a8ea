#include "network/simulator/event_source.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace rodeo::network {

EventSource::EventSource(const Topology& topology, const Traffic& traffic, std::uint32_t rack, std::uint64_t seed)
    : arrivals_(traffic.arrivals),
      spread_(traffic.size_spread),
      event_bytes_(static_cast<double>(traffic.event_bytes)),
      least_bytes_(static_cast<double>(topology.readouts)),
      sigma_(traffic.size_sigma),
      period_ps_(static_cast<double>(kPicosecondsPerSecond) / traffic.event_rate_hz),
      jitter_ps_(period_ps_ * traffic.jitter_periods),
      times_(seed, 4 * rack),
      sizes_(seed, 4 * rack + 1) {
  period_scaled_ = static_cast<unsigned __int128>(period_ps_ * 0x1p20) << 12;
  offset_ = static_cast<Picoseconds>(period_scaled_ * rack / topology.racks >> 32);  // racks take turns
  pop();
}

Picoseconds EventSource::periodic(std::uint64_t number) const {
  return offset_ + static_cast<Picoseconds>((period_scaled_ * number + (std::uint64_t{1} << 31)) >> 32);
}

void EventSource::pop() {
  switch (arrivals_) {
    case Arrivals::periodic: next_ = periodic(number_++); return;
    case Arrivals::poisson:
      poisson_time_ += static_cast<Picoseconds>(std::floor(times_.exponential() * period_ps_ + 0.5));
      next_ = poisson_time_;
      return;
    case Arrivals::jittered: break;
  }
  // Event n arrives within [n, n + 2 jitter] periods, so no later draw can precede the first of the heap.
  while (drawn_.empty() || periodic(number_) < drawn_.front()) {
    drawn_.push_back(periodic(number_++) + static_cast<Picoseconds>(2 * jitter_ps_ * times_.uniform()));
    std::push_heap(drawn_.begin(), drawn_.end(), std::greater<>());
  }
  std::pop_heap(drawn_.begin(), drawn_.end(), std::greater<>());
  next_ = drawn_.back();
  drawn_.pop_back();
}

std::uint64_t EventSource::draw_bytes() {
  double bytes = event_bytes_;
  if (spread_ == SizeSpread::normal) {
    bytes += event_bytes_ * sigma_ * sizes_.normal();
  } else if (spread_ == SizeSpread::log_normal) {
    // The mean is event_bytes, the deviation sigma x event_bytes.
    const double variance = portable_log(1 + sigma_ * sigma_);
    bytes *= portable_exp(portable_sqrt(variance) * sizes_.normal() - variance / 2);
  }
  return static_cast<std::uint64_t>(std::floor(std::clamp(bytes, least_bytes_, 16 * event_bytes_) + 0.5));
}

}  // namespace rodeo::network
