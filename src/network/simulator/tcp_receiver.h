// The receiving end of a connection: segments received in order and out of order, and the times of acknowledgements.
#pragma once

#include <cstdint>
#include <vector>

#include "network/simulator/owned.h"
#include "network/simulator/tcp_parameters.h"
#include "network/simulator/tcp_sender.h"

namespace rodeo::network {

class TcpReceiver {
 public:
  void start(std::uint32_t quick_acks) { quick_ = quick_acks; }

  /// Takes the segments [first, first + count), which have arrived. Returns the number of acknowledgements due now: at most
  /// one for a segment; for a train the number that its segments would cause one by one. Fills in `ack` if there is one.
  std::uint32_t receive(const TcpParameters& tcp, Picoseconds now, std::uint32_t first, std::uint32_t count,
                        Acknowledgement& ack) {
    if (first == next_ && !outside_) {
      next_ += count;
      return due(tcp, now, count, ack);
    }
    return receive_out_of_order(tcp, now, first, count, ack);
  }

  /// Call it when the deadline has come, or when a leaving segment carries the acknowledgement.
  Acknowledgement acknowledge() {
    pending_ = 0;
    deadline_ = kNever;
    Acknowledgement ack;
    ack.cumulative = next_;
    return ack;
  }

  /// For transport without acknowledgements: this number of segments have arrived or will never arrive.
  void skip(std::uint32_t count) { next_ += count; }

  std::uint32_t next() const { return next_; }
  Picoseconds deadline() const { return deadline_; }
  std::uint64_t duplicates() const { return duplicates_; }

 private:
  struct Outside {
    std::vector<SegmentBlock> blocks;   // the blocks are disjoint and ascending
    std::vector<std::uint32_t> recent;  // a segment of each block to report, the latest first
  };

  std::uint32_t due(const TcpParameters& tcp, Picoseconds now, std::uint32_t count, Acknowledgement& ack) {
    std::uint32_t acks = 0;
    if (quick_ > 0) {
      acks = count < quick_ ? count : quick_;
      quick_ -= acks;
      count -= acks;
      pending_ = 0;
    }
    pending_ += count;
    if (pending_ >= tcp.segments_per_ack) {
      // Always true for single packets, so they need no division.
      if (pending_ - tcp.segments_per_ack < tcp.segments_per_ack) {
        ++acks;
        pending_ -= tcp.segments_per_ack;
      } else {
        acks += pending_ / tcp.segments_per_ack;
        pending_ %= tcp.segments_per_ack;
      }
    }
    if (pending_ == 0) {
      deadline_ = kNever;
    } else if (deadline_ == kNever || acks > 0) {
      deadline_ = now + tcp.delayed_ack;
    }
    if (acks > 0) {
      ack.cumulative = next_ - pending_;
      ack.blocks = 0;
      ack.duplicate = false;
    }
    return acks;
  }

  std::uint32_t receive_out_of_order(const TcpParameters& tcp, Picoseconds now, std::uint32_t first, std::uint32_t count,
                                     Acknowledgement& ack);
  void insert(SegmentBlock block);
  void report(Acknowledgement& ack) const;

  std::uint32_t next_ = 0;
  std::uint32_t pending_ = 0;  ///< segments in order that are not yet acknowledged
  std::uint32_t quick_ = 0;
  Picoseconds deadline_ = kNever;
  Owned<Outside> outside_;
  std::uint64_t duplicates_ = 0;  ///< segments that arrived again
};

}  // namespace rodeo::network
