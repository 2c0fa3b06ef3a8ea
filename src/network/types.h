// Topology, traffic and switch of an event-building network: the input of formula, simulator and laboratory.
//
// Figure 2 of the network paper: readout nodes ──► core ──► racks of top-of-rack switches ──► filter nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace rodeo::network {

enum class Arrivals : unsigned char { periodic, jittered, poisson };
enum class Assignment : unsigned char { round_robin, random, least_loaded };
enum class SizeSpread : unsigned char { fixed, normal, log_normal };
enum class UplinkSharing : unsigned char { ideal, flow_hash };

/// Counts and speeds. Every rate is in bits per second on the wire.
struct Topology {
  std::uint32_t readouts = 48;
  std::uint32_t nodes = 32;  // number of filter nodes in all racks together
  std::uint32_t racks = 1;   // the nodes are split evenly over the racks
  std::uint64_t readout_link_bps = 200'000'000'000;
  std::uint64_t uplink_bps = 800'000'000'000;  // speed of all links of one rack's switch together
  std::uint32_t uplinks = 8;                   // number of physical links that make up uplink_bps
  UplinkSharing uplink_sharing = UplinkSharing::ideal;
  std::uint64_t node_link_bps = 25'000'000'000;
  std::uint64_t propagation_ns = 1000;  // delay one way, from readout to node
};

/// The buffer memory of one top-of-rack switch.
struct SwitchBuffer {
  std::optional<std::uint64_t> shared_bytes;  // nothing: the memory is infinite
  std::uint64_t dedicated_bytes_per_port = 0;
  double dynamic_threshold = 0;  // alpha: a port may hold alpha x the free pool; 0: no threshold
  std::optional<std::uint64_t> port_limit_bytes;
  std::uint32_t cell_bytes = 0;  // 0: bytes are counted without rounding
  std::uint32_t first_cell_metadata_bytes = 0;
  bool virtual_output_queues = false;  // deep-buffer model: one queue per input and output
};

/// The reasons for which a switch dropped packets.
struct DropCount {
  std::uint64_t pool_full = 0;   // no shared memory was left
  std::uint64_t threshold = 0;   // the port had its dynamic share of the free pool
  std::uint64_t port_limit = 0;  // the port (or its virtual output queue) was at its limit

  std::uint64_t total() const { return pool_full + threshold + port_limit; }
  bool operator==(const DropCount&) const = default;
  DropCount& operator+=(const DropCount& more) {
    pool_full += more.pool_full;
    threshold += more.threshold;
    port_limit += more.port_limit;
    return *this;
  }
};

/// The data that readouts send, and the times. Event sizes are payload; every packet adds its headers.
struct Traffic {
  std::uint64_t event_bytes = 5'000'000;  // payload of a whole event, all readouts together
  double event_rate_hz = 12'000;          // rate of the events of one rack
  Arrivals arrivals = Arrivals::periodic;
  double jitter_periods = 0.5;  // for jittered arrivals: uniform in +- this many periods
  Assignment assignment = Assignment::round_robin;
  SizeSpread size_spread = SizeSpread::fixed;
  double size_sigma = 0;  // deviation relative to the mean
  std::uint32_t mtu_bytes = 1500;
  std::uint32_t ip_tcp_bytes = 52;  // headers inside the MTU: IPv4, TCP with timestamps
  // Headers around the MTU, on links and in buffers alike; 38 with preamble, check sequence and gap.
  std::uint32_t ethernet_bytes = 14;
  std::uint32_t request_bytes = 64;  // payload of a request

  // About the filter nodes: how they send requests, and how fast they work.
  std::uint32_t events_in_flight = 32;    // events of each node from assignment to processed; 0: no limit
  std::uint64_t request_gap_ns = 0;       // pacing: least time between two requests of a node
  std::uint32_t request_credits = 0;      // fragments that a node may have requested and not received; 0: no limit
  std::uint64_t processing_ns = 0;        // time for an event after its last fragment
  bool processing_exponential = false;    // processing_ns is the mean of an exponential distribution
  double node_service_hz = 0;             // built events that a node's server accepts, one after another; 0: no limit
  double readout_service_hz = 0;          // requests that a readout answers, one after another; 0: no limit
  std::uint64_t readout_response_ns = 0;  // additional time from request to answer
  // Random addition to the time from request to answer: uniform from 0 to this; answers of a readout stay in order.
  std::uint64_t readout_jitter_ns = 0;

  std::uint32_t segment_bytes() const { return mtu_bytes - ip_tcp_bytes; }
  std::uint32_t header_bytes() const { return ip_tcp_bytes + ethernet_bytes; }
};

/// The topology of this name: `lab-2023` or `hl-lhc`. The error for other names lists the known ones.
Result<Topology> topology_preset(std::string_view name);
/// The switch of this name: `qfx5120` (27 MB shared) or `acx7100` (virtual output queues). The error for other names lists
/// the known ones.
Result<SwitchBuffer> switch_preset(std::string_view name);

/// Refuses networks that cannot be built or would run for ever: zero counts, sizes and rates, nodes that do not fill the
/// racks, more load than the share `fullest` of a link's rate (headers included; every rack has this rate). The error names
/// the value and the remedy. Errors: network.zero, network.topology, network.size, network.overload.
Result<void> check(const Topology& topology, const Traffic& traffic, double fullest = 1);

/// Refuses empty cells, a buffer without room for one frame, and an invalid threshold. Errors: network.size.
Result<void> check(const SwitchBuffer& buffer, const Traffic& traffic);

/// A text about the node or readout whose own speed, not the network's, limits the rate; empty if there is none. A
/// simulation may want such a limit.
std::string slower_than_asked(const Topology& topology, const Traffic& traffic);

/// Bytes on a link for an event of mean size, headers included.
double wire_bytes_per_event(const Topology& topology, const Traffic& traffic);

}  // namespace rodeo::network
