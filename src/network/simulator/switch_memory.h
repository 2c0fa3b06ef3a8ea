// The memory of one top-of-rack switch and the ports towards its nodes: which packets enter, when they leave, the largest
// occupancy.
//
// A port is a FIFO, so a packet's departure is known when it enters; memory is freed bit by bit as the port sends. The
// occupancy grows only at arrivals: checked there, its largest value is exact. In bytes of frames the occupancy follows from
// the times that the ports still need to send. In cells, and with virtual output queues, it follows from sums over packets.
// Between two exact computations these sums are upper bounds, which are enough in most cases.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "network/simulator/outcome.h"
#include "network/simulator/packet.h"
#include "network/simulator/ring.h"
#include "network/types.h"

namespace rodeo::network {

struct Occupancy {
  std::uint64_t frames = 0;
  std::uint64_t payload = 0;
  std::uint64_t cells = 0;
};

/// Bytes of packets on links and in memory.
class PacketSizes {
 public:
  PacketSizes(const Traffic& traffic, const SwitchBuffer& buffer)
      : segment(traffic.segment_bytes()),
        header(traffic.header_bytes()),
        cell_(buffer.cell_bytes),
        metadata_(buffer.first_cell_metadata_bytes),
        full_cells_(cells_of(traffic.segment_bytes())) {}

  const std::uint32_t segment;
  const std::uint32_t header;

  Occupancy of(std::uint32_t count, std::uint32_t last_payload) const {
    const std::uint64_t payload = static_cast<std::uint64_t>(count - 1) * segment + last_payload;
    const std::uint64_t frames = payload + static_cast<std::uint64_t>(count) * header;
    if (cell_ == 0) return {frames, payload, frames};
    const std::uint64_t last = last_payload == segment ? full_cells_ : cells_of(last_payload);
    return {frames, payload, static_cast<std::uint64_t>(count - 1) * full_cells_ + last};
  }

 private:
  std::uint64_t cells_of(std::uint32_t payload) const {
    if (cell_ == 0) return payload + header;
    return (static_cast<std::uint64_t>(payload) + header + metadata_ + cell_ - 1) / cell_ * cell_;
  }

  std::uint32_t cell_;
  std::uint32_t metadata_;
  std::uint64_t full_cells_;
};

template <bool kTrain>
class SwitchMemory {
 public:
  using Item = Packet<kTrain>;

  SwitchMemory(const SwitchBuffer& buffer, const PacketSizes& sizes, LinkTime in, LinkTime out, std::uint32_t ports,
               std::uint32_t inputs);

  /// Takes a packet (or train) for a port whose last bit arrives at `now`; calls are in order of time. False: the packet is
  /// dropped and counted. If only a part of a train might be dropped, the call only sets `split`: then offer its packets one
  /// by one.
  bool arrive(Picoseconds now, std::uint32_t port, std::uint32_t input, PacketWord word, std::uint32_t count, bool& split);
  /// Takes a dropped packet: its place in the queue stays, so that the receiver learns of it (transport without
  /// retransmission).
  void arrive_ghost(Picoseconds now, std::uint32_t port, PacketWord word, std::uint32_t count);

  /// The time at which the next packet leaves the port; with virtual output queues it is known only up to the time passed to
  /// serve().
  Picoseconds next_departure(std::uint32_t port) const {
    const Port& p = ports_[port];
    return p.queue.empty() ? kNever : p.queue.front().time;
  }
  /// Prefetches the data of next_departure() and pop().
  void fetch(std::uint32_t port) const { __builtin_prefetch(ports_[port].queue.ahead(kAhead)); }
  /// The packet that leaves next; the queue must not be empty.
  const Item& next(std::uint32_t port) const { return ports_[port].queue.front(); }
  Item pop(std::uint32_t port);
  /// For virtual output queues: decides which packets start to leave before `end`.
  void serve(std::uint32_t port, Picoseconds end);
  bool waits(std::uint32_t port) const { return ports_[port].waiting != 0; }

  /// The occupancy at `now`, which must not be before the latest arrival.
  Occupancy occupancy(Picoseconds now);
  /// The largest number of frame bytes since the last call; resets it.
  std::uint64_t reset_interval_maximum(Picoseconds now);
  void watch_intervals() { watching_ = true; }

  /// True if these numbers of bytes under way to all ports, and to one port, cannot reach a limit.
  bool certainly_fits(std::uint64_t rack_cells, std::uint64_t port_cells) const {
    if (port_cells > port_limit_) return false;
    if (!has_shared_limit_) return true;
    if (rack_cells > shared_bytes_) return false;
    return alpha_ == 0 || port_cells <= static_cast<std::uint64_t>(
                                            (static_cast<unsigned __int128>(shared_bytes_ - rack_cells) * alpha_) >> 20);
  }

  Occupancy maximum() {
    update_maximum();
    return maximum_;
  }
  Picoseconds maximum_time() const { return maximum_time_; }
  const DropCount& drops() const { return drops_; }

  /// Calls visit(word, count) for each packet in the memory.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Port& port : ports_) {
      for (std::uint64_t i = port.queue.first(); i != port.queue.end(); ++i)
        visit(port.queue.at(i).word, port.queue.at(i).count());
      for (const Ring<Item>& queue : port.inputs) {
        for (std::uint64_t i = queue.first(); i != queue.end(); ++i) visit(queue.at(i).word, queue.at(i).count());
      }
    }
  }

 private:
  struct Port {
    Ring<Item> queue;            ///< packets in order of departure
    std::uint64_t released = 0;  ///< index in queue: earlier packets have left the memory
    Picoseconds last = 0;        ///< time at which the port will be free
    std::uint64_t used = 0;      ///< upper bound of the bytes of memory
    bool sending = false;
    // For virtual output queues:
    std::vector<Ring<Item>> inputs;
    std::vector<std::uint64_t> input_used;
    std::uint32_t waiting = 0;
    std::uint32_t turn = 0;
  };

  static constexpr std::uint64_t kAhead = 4;

  enum class Verdict : std::uint8_t { fits, pool_full, threshold, port_limit };

  Verdict judge(std::uint64_t charge, std::uint64_t port_used, std::uint64_t shared_used, std::uint64_t input_used) const;
  std::uint64_t shared_part(std::uint64_t used) const { return used > dedicated_ ? used - dedicated_ : 0; }
  void release(Port& port, Picoseconds now);
  void leave(Port& port, const Item& item);
  Occupancy part_sent(const Port& port, Picoseconds now) const;
  std::uint64_t exact_shared(Picoseconds now, std::uint32_t asked, std::uint64_t& asked_used);
  void measure(Picoseconds now);
  void note_maximum(Picoseconds now, unsigned __int128 time);
  void update_maximum();
  /// The sum, over all ports, of the time that they still need to send.
  unsigned __int128 time_to_send(Picoseconds now);
  void extend(Port& port, Picoseconds last);

  const PacketSizes sizes_;
  const LinkTime in_;
  const LinkTime out_;
  const bool cut_through_;
  bool limited_ = false;
  bool has_shared_limit_ = false;
  bool virtual_output_queues_ = false;
  std::uint64_t shared_bytes_ = 0;
  std::uint64_t dedicated_ = 0;
  std::uint64_t alpha_ = 0;  ///< alpha in units of 2^-20
  std::uint64_t port_limit_ = 0;

  std::vector<Port> ports_;
  // Members about ports that send: their number, the sum of the times at which they will be done, and a lower bound of these
  // times.
  unsigned __int128 last_sum_ = 0;
  std::uint32_t sending_ = 0;
  Picoseconds first_done_ = kNever;
  unsigned __int128 most_to_send_ = 0;
  unsigned __int128 interval_most_ = 0;
  bool settled_ = true;
  bool by_time_ = true;  ///< occupancy is in frames, and ports are FIFOs
  Occupancy sum_;        ///< upper bounds
  std::uint64_t shared_used_ = 0;
  Occupancy maximum_;
  Picoseconds maximum_time_ = 0;
  bool watching_ = false;
  std::uint64_t interval_maximum_ = 0;
  bool cells_count_ = false;
  DropCount drops_;
};

extern template class SwitchMemory<false>;
extern template class SwitchMemory<true>;

}  // namespace rodeo::network
