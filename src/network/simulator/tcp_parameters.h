// TcpSettings in the units of the simulator: picoseconds and segments.
#pragma once

#include <algorithm>
#include <cstdint>

#include "network/simulator/scenario.h"
#include "network/simulator/time.h"

namespace rodeo::network {

struct TcpParameters {
  CongestionControl control = CongestionControl::cubic;
  std::uint32_t initial_window = 10;
  std::uint32_t window_limit = 4345;
  std::uint32_t quick_acks = 16;
  std::uint32_t segments_per_ack = 2;
  bool slow_start_after_idle = true;
  bool tail_loss_probe = true;
  bool hystart = true;
  Picoseconds delayed_ack = 0;
  Picoseconds rto_min = 0;
  Picoseconds rto_initial = 0;
  Picoseconds rto_max = 0;
  Picoseconds probe_min = 0;
  Picoseconds tick = 0;

  /// The time at which a timer that is set now expires: with kernel ticks at a tick, never early.
  Picoseconds expiry(Picoseconds now, Picoseconds wait) const {
    return tick == 0 ? now + wait : (now / tick + (wait + tick - 1) / tick + 1) * tick;
  }

  TcpParameters() = default;
  TcpParameters(const TcpSettings& settings, std::uint32_t segment_bytes)
      : control(settings.control),
        initial_window(settings.initial_window),
        window_limit(std::max<std::uint32_t>(settings.window_limit_bytes / segment_bytes, 2)),
        quick_acks(settings.quick_acks),
        segments_per_ack(settings.segments_per_ack),
        slow_start_after_idle(settings.slow_start_after_idle),
        tail_loss_probe(settings.tail_loss_probe),
        hystart(settings.hystart),
        delayed_ack(settings.delayed_ack_ns * kPicosecondsPerNanosecond),
        rto_min(settings.rto_min_ns * kPicosecondsPerNanosecond),
        rto_initial(settings.rto_initial_ns * kPicosecondsPerNanosecond),
        rto_max(settings.rto_max_ns * kPicosecondsPerNanosecond),
        probe_min(settings.probe_min_ns * kPicosecondsPerNanosecond),
        tick(settings.timer_tick_ns * kPicosecondsPerNanosecond) {}
};

}  // namespace rodeo::network
