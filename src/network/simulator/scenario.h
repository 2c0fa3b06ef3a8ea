// The input of the simulator: topology, traffic, switch, TCP, engine, duration and seed. The result depends on nothing else.
#pragma once

#include <cstdint>

#include "network/types.h"

namespace rodeo::network {

/// packet: every packet is an event. train: all segments that a flow sends at once are one object until a buffer overflows
/// or a packet is lost.
enum class Engine : unsigned char { packet, train };

/// none: fragments are sent at once, without acknowledgements or retransmission.
enum class CongestionControl : unsigned char { none, reno, cubic };

/// TCP at both ends, with the defaults of Linux.
struct TcpSettings {
  CongestionControl control = CongestionControl::cubic;
  /// True: connections were in use before, so their windows hold two mean fragments, and quick acknowledgements are over.
  /// False: all connections are new at the start, and become warm only after many events.
  bool warm = true;
  std::uint32_t initial_window = 10;             // segments
  std::uint32_t window_limit_bytes = 6'291'456;  // receive window, net.ipv4.tcp_rmem[2]
  bool slow_start_after_idle = true;
  bool tail_loss_probe = true;
  bool hystart = true;                        // cubic may leave slow start early
  std::uint32_t quick_acks = 16;              // the first segments of a connection, each of which is acknowledged alone
  std::uint32_t segments_per_ack = 2;         // an acknowledgement is delayed for at most this number of segments
  std::uint64_t delayed_ack_ns = 40'000'000;  // an acknowledgement is delayed for at most this time
  std::uint64_t rto_min_ns = 200'000'000;
  std::uint64_t rto_initial_ns = 1'000'000'000;
  std::uint64_t rto_max_ns = 120'000'000'000;
  std::uint64_t probe_min_ns = 2'000'000;  // added to two round trips before a tail-loss probe
  std::uint64_t timer_tick_ns = 0;         // tick of the sender's kernel timer: 4 ms at 250 Hz; 0: timers are exact
};

struct Scenario {
  Topology topology;
  Traffic traffic;
  SwitchBuffer buffer;
  TcpSettings tcp;
  Engine engine = Engine::packet;
  std::uint64_t duration_ns = 1'000'000'000;  // virtual time
  std::uint64_t seed = 1;
};

}  // namespace rodeo::network
