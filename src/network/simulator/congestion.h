// Growth and reduction of a window: Reno (RFC 5681) and CUBIC (RFC 9438) with HyStart, in the integer arithmetic of Linux.
#pragma once

#include <cstdint>

#include "network/simulator/tcp_parameters.h"

namespace rodeo::network {

/// The largest integer whose cube does not exceed the value.
std::uint32_t cube_root(std::uint64_t value);

/// The congestion window of one sender, in segments.
class Congestion {
 public:
  std::uint32_t window = 10;
  std::uint32_t threshold = 0x7fffffff;  ///< threshold of slow start

  bool in_slow_start() const { return window < threshold; }

  /// Handles an acknowledgement of new data while the window was the limit. `rtt`: round trip of the newest segment
  /// acknowledged (kNever: unknown). `acknowledged`, `sent_end`: sequence numbers after this acknowledgement and of the next
  /// segment to send.
  void on_acknowledged(const TcpParameters& tcp, Picoseconds now, std::uint32_t segments, std::uint32_t acknowledged,
                       std::uint32_t sent_end);
  /// Takes each round-trip sample, also of an idle window.
  void on_rtt(const TcpParameters& tcp, Picoseconds now, Picoseconds rtt, std::uint32_t acknowledged,
              std::uint32_t sent_end);
  /// The threshold after a loss; stores the window for cubic's plateau.
  std::uint32_t threshold_after_loss(const TcpParameters& tcp);
  /// Handles a restart after the time `idle` without data in flight: cubic's clock excludes this time.
  void on_restart(const TcpParameters& tcp, Picoseconds now, Picoseconds idle);
  /// Handles a retransmission time-out: forgets everything about the path.
  void on_timeout();
  /// True if the arrival times of the next acknowledgements may end slow start.
  bool learns(const TcpParameters& tcp) const {
    return tcp.control == CongestionControl::cubic && tcp.hystart && !found_ && in_slow_start();
  }
  void clear_count() { count_ = 0; }

 private:
  void grow_by_count(std::uint32_t per_segment, std::uint32_t segments);
  std::uint32_t cubic_period(Picoseconds now, std::uint32_t segments);
  void start_round(Picoseconds now, std::uint32_t sent_end);

  std::uint32_t count_ = 0;  ///< acknowledged segments that have not yet enlarged the window

  // Members of cubic, with time in units of 1/1024 s, as its constants require:
  Picoseconds epoch_start_ = kNever;
  Picoseconds delay_min_ = kNever;
  std::uint32_t plateau_ = 0;      ///< window before the last loss
  std::uint32_t origin_ = 0;       ///< window at which the curve is flat
  std::uint32_t to_origin_ = 0;    ///< K, in 1/1024 s
  std::uint32_t reno_window_ = 0;  ///< the window of Reno
  std::uint32_t reno_count_ = 0;

  // Members of HyStart; one round is one window:
  Picoseconds round_start_ = 0;
  Picoseconds last_ack_ = 0;
  Picoseconds round_rtt_ = kNever;
  std::uint32_t round_end_ = 0;
  std::uint32_t samples_ = 0;
  bool found_ = false;
};

}  // namespace rodeo::network
