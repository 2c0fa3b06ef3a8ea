// Times and sizes of events.
#pragma once

#include <cstdint>
#include <vector>

#include "network/simulator/random.h"
#include "network/simulator/time.h"
#include "network/types.h"

namespace rodeo::network {

/// The events of one rack, in order of time.
class EventSource {
 public:
  EventSource(const Topology& topology, const Traffic& traffic, std::uint32_t rack, std::uint64_t seed);

  Picoseconds next_time() const { return next_; }
  void pop();
  /// The payload of an event: at least a byte for each readout.
  std::uint64_t draw_bytes();

 private:
  Picoseconds periodic(std::uint64_t number) const;

  const Arrivals arrivals_;
  const SizeSpread spread_;
  const double event_bytes_;
  const double least_bytes_;
  const double sigma_;
  const double period_ps_;
  const double jitter_ps_;
  unsigned __int128 period_scaled_ = 0;  // in units of 2^-32 ps
  Picoseconds offset_ = 0;
  Random times_;
  Random sizes_;
  std::uint64_t number_ = 0;
  Picoseconds poisson_time_ = 0;
  std::vector<Picoseconds> drawn_;  // for jittered arrivals: heap of times that later draws may still precede
  Picoseconds next_ = 0;
};

}  // namespace rodeo::network
