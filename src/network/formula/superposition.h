// Occupancy of a switch for any sequence of events: the sum of the bytes of all events in the switch over time. The closed
// forms are checked against this sum.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "network/types.h"

namespace rodeo::network {

/// One whole event on its way to one port.
struct Burst {
  double start_s = 0;  ///< time at which its first byte could be sent to the switch
  double bytes = 0;    ///< bytes on the wire
  std::uint32_t port = 0;
};

struct OccupancyPoint {
  double time_s = 0;
  double bytes = 0;
};

struct Superposition {
  double max_bytes = 0;
  double max_port_bytes = 0;  ///< largest occupancy of one port
  double last_drained_s = 0;
  std::vector<OccupancyPoint> points;  ///< corners of the piecewise linear sum, in time order; empty unless requested
};

struct SuperpositionSettings {
  double input_bps = 800e9;
  double output_bps = 25e9;
  std::uint32_t ports = 32;
  /// True: events share one uplink and arrive one after another. False: each event has its own uplink, as in the published
  /// model.
  bool one_uplink = true;
  bool keep_points = false;
};

/// Ports are first in, first out, and drain at output_bps. Bursts may be in any order of start. Errors: network.zero (rates,
/// sizes, ports), network.bad_sequence (a time that is not finite, an unknown port).
Result<Superposition> superpose(std::span<const Burst> bursts, const SuperpositionSettings& settings);

/// The arrivals of this name: periodic, jittered or poisson. Error network.bad_sequence.
Result<Arrivals> arrivals_of(std::string_view name);

/// A sequence generated from a seed: the same events on every machine.
struct SequenceSettings {
  double event_bytes = 5e6;  ///< bytes on the wire
  double event_rate_hz = 12e3;
  std::uint32_t ports = 32;  ///< ports that are served in turn
  Arrivals arrivals = Arrivals::periodic;
  double jitter_periods = 0.5;  ///< for jittered arrivals: uniform in +- this many periods
  std::uint64_t events = 10'000;
  std::uint64_t seed = 1;
};

std::vector<Burst> make_bursts(const SequenceSettings& settings);

}  // namespace rodeo::network
