#include "network/laboratory/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rodeo::network::laboratory {

namespace {

/// SplitMix64 (Steele, Lea, Flood 2014) as a hash of (seed, event, purpose).
std::uint64_t mixed(std::uint64_t seed, std::uint64_t event, std::uint64_t purpose) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15U + event * 0xbf58476d1ce4e5b9U + (purpose + 1) * 0x94d049bb133111ebU;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

/// In (0, 1].
double uniform(std::uint64_t seed, std::uint64_t event, std::uint64_t purpose) {
  return (static_cast<double>(mixed(seed, event, purpose) >> 11U) + 1) * 0x1p-53;
}

double normal(std::uint64_t seed, std::uint64_t event) {  // Box-Muller
  return std::sqrt(-2 * std::log(uniform(seed, event, 3))) * std::cos(2 * std::numbers::pi * uniform(seed, event, 4));
}

std::uint64_t size_of(const Traffic& traffic, std::uint32_t readouts, std::uint64_t seed, std::uint64_t event) {
  const double mean = static_cast<double>(traffic.event_bytes);
  double size = mean;
  if (traffic.size_spread == SizeSpread::normal) {
    size = mean * (1 + traffic.size_sigma * normal(seed, event));
  } else if (traffic.size_spread == SizeSpread::log_normal) {
    const double variance = std::log1p(traffic.size_sigma * traffic.size_sigma);  // mean and relative sigma as asked
    size = mean * std::exp(std::sqrt(variance) * normal(seed, event) - variance / 2);
  }
  return static_cast<std::uint64_t>(std::clamp(size, static_cast<double>(readouts), 100 * mean));
}

}  // namespace

std::vector<ScheduledEvent> schedule_of(std::uint32_t node, const Topology& topology, const Traffic& traffic,
                                        double warm_up_seconds, double seconds, std::uint64_t seed) {
  std::vector<ScheduledEvent> events;
  const double period = 1 / traffic.event_rate_hz;
  const std::uint32_t ports = topology.nodes / topology.racks;
  const std::uint32_t rack = node / ports;
  const double offset = period * rack / topology.racks;  // racks take turns
  seed += rack * std::uint64_t{0x9e3779b97f4a7c15U};     // and have sequences of their own
  double poisson = 0;
  for (std::uint64_t n = 0;; ++n) {
    const double regular = offset + static_cast<double>(n) * period;
    double at = regular;
    if (traffic.arrivals == Arrivals::poisson) {
      poisson -= period * std::log(uniform(seed, n, 0));
      at = poisson;
    } else if (traffic.arrivals == Arrivals::jittered) {
      at += (2 * uniform(seed, n, 1) - 1) * traffic.jitter_periods * period;
    }
    const double end = warm_up_seconds + seconds;
    if ((traffic.arrivals == Arrivals::poisson ? at : regular) >= end) break;
    if (at >= end) continue;
    const std::uint64_t chosen = (traffic.assignment == Assignment::random ? mixed(seed, n, 2) : n) % std::uint64_t{ports};
    if (chosen != node % ports) continue;
    events.push_back(
        {n, std::llround((std::max(at, 0.0) - warm_up_seconds) * 1e9), size_of(traffic, topology.readouts, seed, n)});
  }
  std::ranges::stable_sort(events, {}, &ScheduledEvent::at_ns);
  return events;
}

std::uint64_t fragment_bytes(std::uint64_t event_bytes, std::uint32_t readout, std::uint32_t readouts) {
  return event_bytes / readouts + (readout < event_bytes % readouts ? 1 : 0);
}

}  // namespace rodeo::network::laboratory
