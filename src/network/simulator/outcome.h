// The result of a simulation. All values except wall and CPU times are equal on every machine.
#pragma once

#include <cstdint>

#include "network/types.h"

namespace rodeo::network {

/// Packets of one kind. sent = delivered + dropped + in_flight, which is the number of packets under way at the end, counted
/// in the queues.
struct PacketCount {
  std::uint64_t sent = 0;
  std::uint64_t delivered = 0;
  std::uint64_t dropped = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t sent_bytes = 0;  // bytes of frames with headers, like the other members in bytes
  std::uint64_t delivered_bytes = 0;
  std::uint64_t dropped_bytes = 0;
  std::uint64_t in_flight_bytes = 0;

  bool operator==(const PacketCount&) const = default;
};

struct Outcome {
  // Largest occupancy of one top-of-rack switch towards its nodes, over the whole run and all racks.
  std::uint64_t max_buffer_bytes = 0;          // bytes of frames, as on the links
  std::uint64_t max_buffer_payload_bytes = 0;  // event data in the frames at that moment
  // Largest occupancy in cells of the switch; equal to max_buffer_bytes if it has no cells.
  std::uint64_t max_buffer_cell_bytes = 0;
  std::uint64_t max_buffer_ns = 0;  // virtual time of max_buffer_bytes

  DropCount drops;
  PacketCount data;
  PacketCount ack;
  PacketCount request;
  std::uint64_t packet_hops = 0;  // links crossed by packets of all kinds

  std::uint64_t retransmits = 0;      // data packets sent again
  std::uint64_t fast_recoveries = 0;  // losses found by selective acknowledgements
  std::uint64_t probes = 0;           // tail-loss probes
  std::uint64_t timeouts = 0;         // number of retransmission time-outs
  std::uint64_t duplicates = 0;       // data packets that a node already had

  std::uint64_t events_offered = 0;      // events that the source offered
  std::uint64_t events_assigned = 0;     // events assigned to a node; the others wait for a node
  std::uint64_t events_completed = 0;    // events whose fragments were all received within the time
  std::uint64_t first_completed_ns = 0;  // virtual time of the first completed event
  std::uint64_t events_waiting_max = 0;
  std::uint64_t latency_p50_ns = 0;  // time from assignment to last fragment, to 0.2 %; 0 if no event is complete
  std::uint64_t latency_p99_ns = 0;
  std::uint64_t latency_max_ns = 0;

  std::uint64_t virtual_ns = 0;           // simulated time; shorter if the caller stopped the run
  std::uint64_t packet_by_packet_ns = 0;  // simulated time that went packet by packet
  std::uint64_t hash = 0;                 // hash over every packet's fate in order: runs with equal hashes are equal
  double wall_seconds = 0;                // wall time, set-up included
  double cpu_seconds = 0;                 // CPU time of the calling thread

  /// Events per second, counted from the first complete event, because about the same number of events is under way then as
  /// at the end.
  double completed_rate_hz() const {
    if (events_completed < 2) return 0;
    return static_cast<double>(events_completed - 1) / (static_cast<double>(virtual_ns - first_completed_ns) * 1e-9);
  }
};

}  // namespace rodeo::network
