#include "network/formula/superposition.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/core.h>

namespace rodeo::network {

namespace {

/// A change of the sum's slope, in bytes per second.
struct Corner {
  double time_s;
  double slope;
};

Result<void> check(std::span<const Burst> bursts, const SuperpositionSettings& settings) {
  if (!(settings.input_bps > 0) || !(settings.output_bps > 0) || settings.ports == 0) {
    return std::unexpected(Error{"network.zero", "a superposition needs rates above 0 and at least one port"});
  }
  for (std::size_t i = 0; i < bursts.size(); ++i) {
    const Burst& burst = bursts[i];
    if (!(burst.bytes > 0) || !std::isfinite(burst.bytes)) {
      return std::unexpected(
          Error{"network.zero", fmt::format("event {} has {} bytes", i, burst.bytes), "", "give each a size above 0"});
    }
    if (!std::isfinite(burst.start_s)) {
      return std::unexpected(
          Error{"network.bad_sequence", fmt::format("event {} has no valid start", i), "", "give seconds"});
    }
    if (burst.port >= settings.ports) {
      return std::unexpected(Error{"network.bad_sequence",
                                   fmt::format("event {} goes to port {} of {}", i, burst.port, settings.ports), "",
                                   "ports count from 0"});
    }
  }
  return {};
}

}  // namespace

Result<Superposition> superpose(std::span<const Burst> bursts, const SuperpositionSettings& settings) {
  RODEO_TRY(check(bursts, settings));
  const double in = settings.input_bps / 8;
  const double out = settings.output_bps / 8;
  std::vector<Burst> ordered(bursts.begin(), bursts.end());
  std::stable_sort(ordered.begin(), ordered.end(), [](const Burst& a, const Burst& b) { return a.start_s < b.start_s; });

  // The input of each port: a rectangle of height `in` for each event. The contents of a port depend only on its own
  // rectangles.
  std::vector<std::vector<Corner>> inputs(settings.ports);
  double uplink_free = -HUGE_VAL;
  for (const Burst& burst : ordered) {
    const double start = settings.one_uplink ? std::max(burst.start_s, uplink_free) : burst.start_s;
    uplink_free = start + burst.bytes / in;
    inputs[burst.port].push_back({start, in});
    inputs[burst.port].push_back({uplink_free, -in});
  }

  Superposition result;
  std::vector<Corner> corners;
  for (auto& input : inputs) {
    std::stable_sort(input.begin(), input.end(), [](const Corner& a, const Corner& b) { return a.time_s < b.time_s; });
    double time = 0;
    double held = 0;
    double arriving = 0;
    double slope = 0;
    const auto bend = [&](double at, double to) {
      if (to != slope) corners.push_back({at, to - slope});
      slope = to;
    };
    for (std::size_t i = 0; i <= input.size(); ++i) {
      const double next = i < input.size() ? input[i].time_s : HUGE_VAL;
      // From `time` to `next` the input is constant; the port may run empty in between.
      if (held > 0 && arriving < out && time + held / (out - arriving) <= next) {
        time += held / (out - arriving);
        held = 0;
        bend(time, 0);
        result.last_drained_s = std::max(result.last_drained_s, time);
      }
      if (i == input.size()) break;
      held = std::max(0.0, held + slope * (next - time));
      time = next;
      arriving = std::max(0.0, arriving + input[i].slope);
      if (arriving < in / 2) arriving = 0;  // rounding error of a sum of rectangles
      result.max_port_bytes = std::max(result.max_port_bytes, held);
      bend(time, held > 0 || arriving > out ? arriving - out : 0);
    }
  }

  std::sort(corners.begin(), corners.end(), [](const Corner& a, const Corner& b) { return a.time_s < b.time_s; });
  double time = corners.empty() ? 0 : corners.front().time_s;
  double bytes = 0;
  double slope = 0;
  for (std::size_t i = 0; i < corners.size();) {
    bytes = std::max(0.0, bytes + slope * (corners[i].time_s - time));
    time = corners[i].time_s;
    for (; i < corners.size() && corners[i].time_s == time; ++i) slope += corners[i].slope;
    result.max_bytes = std::max(result.max_bytes, bytes);
    if (settings.keep_points) result.points.push_back({time, bytes});
  }
  return result;
}

Result<Arrivals> arrivals_of(std::string_view name) {
  if (name == "periodic") return Arrivals::periodic;
  if (name == "jittered") return Arrivals::jittered;
  if (name == "poisson") return Arrivals::poisson;
  return std::unexpected(
      Error{"network.bad_sequence", fmt::format("there are no {} arrivals", name), "", "use periodic, jittered or poisson"});
}

std::vector<Burst> make_bursts(const SequenceSettings& settings) {
  std::mt19937_64 bits(settings.seed);
  const auto uniform = [&] {
    return static_cast<double>(bits() >> 11) * 0x1p-53;
  };  // Written here because the distributions of the C++ standard differ between libraries.
  std::vector<double> starts(settings.events);
  double time = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    switch (settings.arrivals) {
      case Arrivals::periodic: time = static_cast<double>(i); break;
      case Arrivals::jittered: time = static_cast<double>(i) + settings.jitter_periods * (2 * uniform() - 1); break;
      case Arrivals::poisson: time -= std::log1p(-uniform()); break;
    }
    starts[i] = time / settings.event_rate_hz;
  }
  // Events get their ports in the order of arrival.
  std::sort(starts.begin(), starts.end());
  std::vector<Burst> bursts(starts.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    bursts[i] = {starts[i], settings.event_bytes, static_cast<std::uint32_t>(i % settings.ports)};
  }
  return bursts;
}

}  // namespace rodeo::network
