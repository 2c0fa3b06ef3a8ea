// A small network whose buffer overflows sometimes, for tests of properties over many runs.
#pragma once

#include "network/simulator/simulate.h"

namespace rodeo::network {

inline Scenario lossy(std::uint64_t seed) {
  Scenario s;
  s.topology.readouts = 12;
  s.topology.nodes = 8;
  s.topology.uplink_bps = 200'000'000'000;
  s.traffic.event_bytes = 1'000'000;
  s.traffic.event_rate_hz = 12'000;
  s.traffic.arrivals = Arrivals::poisson;
  s.buffer.shared_bytes = 2'200'000;
  s.tcp.rto_min_ns = 10'000'000;
  s.duration_ns = 50'000'000;
  s.seed = seed;
  return s;
}

}  // namespace rodeo::network
