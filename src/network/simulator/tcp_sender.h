// The sending end of a connection modelled on Linux: window, selective acknowledgements, recovery by time (RACK, RFC 8985),
// proportional rate reduction (RFC 6937), tail-loss probe, retransmission time-out (RFC 6298). Sequence numbers count
// segments.
#pragma once

#include <cstdint>
#include <vector>

#include "network/simulator/congestion.h"
#include "network/simulator/segment_words.h"
#include "network/simulator/tcp_parameters.h"

namespace rodeo::network {

/// True if a comes before b; numbers wrap.
inline bool before(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }

/// The segments [begin, end).
struct SegmentBlock {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

inline constexpr std::uint32_t kMaxSackBlocks = 3;  // the limit with timestamps, which are always sent

struct Acknowledgement {
  std::uint32_t cumulative = 0;  ///< the next segment that the receiver expects
  std::uint8_t blocks = 0;
  bool duplicate = false;  ///< the segment had already arrived before (DSACK, RFC 2883)
  SegmentBlock block[kMaxSackBlocks];
};

/// The segments that a sender gives to its card, in order.
struct SegmentRun {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  bool retransmission = false;
};
using SegmentRuns = std::vector<SegmentRun>;

class TcpSender {
 public:
  enum class State : std::uint8_t { open, recovery, loss };

  /// Opens the connection with this initial window in segments, and the round trip of the three-way handshake; 0: not
  /// measured.
  void start(const TcpParameters& tcp, std::uint32_t window, Picoseconds round_trip = 0);

  /// The application writes segments. These functions append the segments that may be sent at once to `runs`.
  void write(const TcpParameters& tcp, Picoseconds now, std::uint32_t segments, SegmentRuns& runs);
  void acknowledge(const TcpParameters& tcp, Picoseconds now, const Acknowledgement& ack, SegmentRuns& runs);
  /// Handles all acknowledgements up to this one, of segments in order; the sender is quiet and stays quiet.
  void acknowledge_train(const TcpParameters& tcp, Picoseconds now, std::uint32_t cumulative);
  /// Call it when the deadline has come.
  void expire(const TcpParameters& tcp, Picoseconds now, SegmentRuns& runs);

  /// True if an acknowledgement without blocks causes no sending: then its order relative to other connections has no
  /// effect.
  bool quiet() const { return nxt_ == end_ && !busy_; }

  /// True if the times of the single acknowledgements of a train affect the window.
  bool learns(const TcpParameters& tcp) const { return congestion_.learns(tcp); }

  Picoseconds deadline() const { return deadline_; }
  std::uint32_t unacknowledged() const { return una_; }
  std::uint32_t next() const { return nxt_; }
  std::uint32_t written() const { return end_; }
  std::uint32_t window() const { return congestion_.window; }
  std::uint32_t threshold() const { return congestion_.threshold; }
  std::uint32_t in_flight() const { return nxt_ - una_ - sacked_ - lost_ + retransmitted_; }
  Picoseconds smoothed_rtt() const { return srtt8_ >> 3; }
  Picoseconds timeout(const TcpParameters& tcp) const;  ///< retransmission time-out, backed off
  State state() const { return state_; }

  struct Counts {
    std::uint64_t sent = 0;  ///< segments sent, retransmissions included
    std::uint32_t retransmits = 0;
    std::uint32_t recoveries = 0;
    std::uint32_t probes = 0;
    std::uint32_t timeouts = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  enum class Timer : std::uint8_t { none, timeout, probe, reordering };

  // For each segment in flight: when it was last sent, and its state.
  static constexpr std::uint64_t kSacked = 1;
  static constexpr std::uint64_t kLost = 2;
  static constexpr std::uint64_t kRetransmitted = 4;  ///< the retransmission is under way
  static constexpr std::uint64_t kTwice = 8;          ///< the segment was sent more than once, so it gives no round trip
  static constexpr unsigned kTimeShift = 4;

  /// Without losses, all segments sent at one time are one entry here instead of several.
  struct Batch {
    Picoseconds sent;
    std::uint32_t end;
  };
  static constexpr std::uint32_t kBatches = 3;

  std::uint64_t& segment(std::uint32_t number) { return segments_[number]; }
  void reserve(std::uint32_t segments) { segments_.reserve(segments, una_, nxt_); }
  void switch_to_segments();
  Picoseconds sent_time(std::uint32_t number) const;
  void acknowledge_in_order(const TcpParameters& tcp, Picoseconds now, std::uint32_t cumulative, std::uint32_t at_once);
  void emit_new(Picoseconds now, std::uint32_t count, SegmentRuns& runs);
  void retransmit(Picoseconds now, std::uint32_t number, SegmentRuns& runs);
  void send(const TcpParameters& tcp, Picoseconds now, SegmentRuns& runs);
  void sample_rtt(const TcpParameters& tcp, Picoseconds oldest);
  void note_delivered(const TcpParameters& tcp, Picoseconds now, std::uint32_t number, std::uint64_t sent);
  void mark_lost(Picoseconds now);
  void enter_recovery(const TcpParameters& tcp);
  void reduce_window(std::uint32_t delivered, bool advanced, bool more_lost);
  void restart_after_idle(const TcpParameters& tcp, Picoseconds now);
  void set_timer(const TcpParameters& tcp, Picoseconds now);
  void update_busy();

  // The first members are those that every acknowledgement uses.
  std::uint32_t una_ = 0;
  std::uint32_t nxt_ = 0;
  std::uint32_t end_ = 0;
  std::uint32_t batches_ = 0;
  Batch batch_[kBatches];
  Picoseconds deadline_ = kNever;
  Picoseconds srtt8_ = 0;       ///< eight times the smoothed round trip; 0: not measured yet
  Picoseconds deviation4_ = 0;  ///< four times the mean deviation
  Picoseconds deviation_max_ = 0;
  Picoseconds variation_ = 0;  ///< added to the round trip in the time-out
  Picoseconds rtt_min_ = kNever;
  std::uint32_t rtt_end_ = 0;    ///< the acknowledgement of this segment ends a round trip
  std::uint32_t twice_end_ = 0;  ///< segments below this number may carry kTwice
  std::uint32_t max_out_ = 0;
  std::uint32_t usage_end_ = 0;
  bool busy_ = false;      ///< the sender is not quiet, even without data to send
  bool detailed_ = false;  ///< segments_ is valid instead of batch_
  bool window_limited_ = false;
  State state_ = State::open;
  Timer timer_ = Timer::none;
  std::uint8_t backoff_ = 0;
  bool probe_again_ = false;  ///< the probe was a retransmission
  bool probing_ = false;
  bool twice_ = false;

  SegmentWords segments_;
  std::uint32_t sacked_ = 0;
  std::uint32_t lost_ = 0;
  std::uint32_t retransmitted_ = 0;
  std::uint32_t high_ = 0;  ///< the acknowledgement of this segment ends recovery
  std::uint32_t probe_high_ = 0;
  std::uint32_t prior_window_ = 0;
  std::uint32_t reduction_delivered_ = 0;
  std::uint32_t reduction_sent_ = 0;

  // About the segment that was sent last among those known to have arrived:
  Picoseconds rack_sent_ = 0;
  Picoseconds rack_rtt_ = 0;
  std::uint32_t rack_number_ = 0;
  Picoseconds reordering_wait_ = 0;  ///< 0: nothing waits for the reordering window

  Picoseconds last_sent_ = 0;
  Congestion congestion_;
  Counts counts_;
};

}  // namespace rodeo::network
