#include "network/types.h"

#include <algorithm>

#include <fmt/core.h>

namespace rodeo::network {

Result<Topology> topology_preset(std::string_view name) {
  Topology topology;  // the defaults are the laboratory of 2023
  if (name == "lab-2023") return topology;
  if (name == "hl-lhc") {
    topology.readouts = 600;
    return topology;
  }
  return std::unexpected(
      Error{"network.unknown_preset", fmt::format("there is no topology preset {}", name), "", "use lab-2023 or hl-lhc"});
}

Result<SwitchBuffer> switch_preset(std::string_view name) {
  SwitchBuffer buffer;
  if (name == "qfx5120") {
    // Paper §3.1: 27 MB shared, 5 MB dedicated over 48 ports; cells: Juniper, "QFX5K-Series Switches Packet Buffer
    // Architecture" (2025).
    buffer.shared_bytes = 27'000'000;
    buffer.dedicated_bytes_per_port = 5'000'000 / 48;
    buffer.cell_bytes = 256;
    buffer.first_cell_metadata_bytes = 64;
    return buffer;
  }
  if (name == "acx7100") {
    // Paper §3.1: 8 GB of high-bandwidth memory, a queue for each input and output.
    buffer.shared_bytes = 8'000'000'000;
    buffer.virtual_output_queues = true;
    return buffer;
  }
  return std::unexpected(
      Error{"network.unknown_preset", fmt::format("there is no switch preset {}", name), "", "use qfx5120 or acx7100"});
}

namespace {

/// A value that no network has, or that the model does not accept.
struct Refusal {
  bool refused;
  const char* code;
  std::string what;
  const char* next;
};

Result<void> first_of(std::initializer_list<Refusal> refusals) {
  for (const auto& [refused, code, what, next] : refusals) {
    if (refused) return std::unexpected(Error{code, what, "", next});
  }
  return {};
}

Result<void> check_counts(const Topology& topology, const Traffic& traffic) {
  const auto zero = [](auto value, std::string_view name, const char* next) {
    return Refusal{!(value > 0), "network.zero", fmt::format("{} is {}, which is impossible", name, value), next};
  };
  const char* const count = "give at least 1";
  const char* const speed = "give a rate above 0, for example 25Gbps";
  return first_of(
      {zero(topology.readouts, "the number of readouts", count), zero(topology.nodes, "the number of filter nodes", count),
       zero(topology.racks, "the number of racks", count), zero(topology.uplinks, "the number of uplinks", count),
       zero(topology.readout_link_bps, "the readout link", speed), zero(topology.uplink_bps, "the uplink", speed),
       zero(topology.node_link_bps, "the node link", speed),
       zero(traffic.event_bytes, "the event size", "give a size above 0, for example 5MB"),
       zero(traffic.event_rate_hz, "the event rate", "give a rate above 0, for example 12kHz")});
}

Result<void> check_sizes(const Topology& topology, const Traffic& traffic) {
  const auto size = [](bool refused, std::string what, const char* next) {
    return Refusal{refused, "network.size", std::move(what), next};
  };
  const std::uint64_t fragment = traffic.event_bytes / topology.readouts;
  // A normal distribution is cut at 0, every distribution at 16 times the mean. A wider distribution would get another mean.
  const double widest = traffic.size_spread == SizeSpread::normal ? 0.4 : 1.0;
  const double sigma = traffic.size_sigma;
  return first_of(
      {size(traffic.mtu_bytes < traffic.ip_tcp_bytes + 64 || traffic.mtu_bytes > 65'535,
            fmt::format("an MTU of {} B does not hold {} B of headers and data, or is above 65535", traffic.mtu_bytes,
                        traffic.ip_tcp_bytes),
            "give 1500 or 9000"),
       size(traffic.ethernet_bytes > 1000 || traffic.ip_tcp_bytes > 1000 || traffic.header_bytes() == 0,
            fmt::format("a packet cannot have {} B of headers", traffic.header_bytes()), "give between 1 and 1000 B"),
       size(fragment == 0,
            fmt::format("an event of {} B leaves less than a byte for each of {} readouts", traffic.event_bytes,
                        topology.readouts),
            "give larger events or fewer readouts"),
       size(fragment > 100'000'000, fmt::format("a fragment of {} B is more than the model takes", fragment),
            "give at most 100 MB for each readout"),
       size(!(sigma >= 0 && sigma <= widest),
            fmt::format("a relative deviation of {} is not possible for these sizes, because no size is below 0", sigma),
            "give at most 0.4 for a normal distribution, at most 1 for a log-normal one"),
       size(sigma > 0 && traffic.size_spread == SizeSpread::fixed,
            fmt::format("a relative deviation of {} is given, but the spread of sizes is fixed", sigma),
            "add a spread: normal or log-normal"),
       size(!(traffic.jitter_periods >= 0 && traffic.jitter_periods <= 10'000),
            fmt::format("a jitter of {} periods makes no sense", traffic.jitter_periods), "give between 0 and 10000"),
       size(!(traffic.event_rate_hz >= 1e-3 && traffic.event_rate_hz <= 1e9),
            fmt::format("an event rate of {} Hz is beyond the model", traffic.event_rate_hz),
            "give between 1 mHz and 1 GHz"),
       size(traffic.request_bytes > 9000 || traffic.request_bytes == 0,
            fmt::format("a request of {} B is not one packet", traffic.request_bytes), "give 1 to 9000 B")});
}

Result<void> check_shape(const Topology& topology) {
  const auto shape = [](bool refused, std::string what, const char* next) {
    return Refusal{refused, "network.topology", std::move(what), next};
  };
  const auto link = [&](std::uint64_t bps) {
    return shape(bps < 1'000'000 || bps > 100'000'000'000'000, fmt::format("a link of {} b/s is beyond the model", bps),
                 "give between 1Mbps and 100Tbps");
  };
  return first_of(
      {shape(topology.nodes % topology.racks != 0,
             fmt::format("{} filter nodes cannot be split evenly over {} racks", topology.nodes, topology.racks),
             "give a multiple of the racks"),
       shape(std::uint64_t{topology.readouts} * topology.nodes > (1u << 21),
             fmt::format("{} readouts x {} nodes are more than 2097152 connections", topology.readouts, topology.nodes),
             "take fewer racks: they are largely independent"),
       shape(topology.readouts > 65'536 || topology.uplinks > 1024,
             fmt::format("{} readouts or {} uplinks are more than the model takes", topology.readouts, topology.uplinks),
             "give at most 65536 readouts and 1024 uplinks"),
       link(topology.readout_link_bps), link(topology.uplink_bps / topology.uplinks), link(topology.node_link_bps),
       shape(topology.propagation_ns > 1'000'000'000,
             fmt::format("a propagation delay of {} ns is beyond the model", topology.propagation_ns), "give at most 1s")});
}

}  // namespace

double wire_bytes_per_event(const Topology& topology, const Traffic& traffic) {
  const std::uint64_t share = traffic.event_bytes / topology.readouts;
  const std::uint64_t larger = traffic.event_bytes % topology.readouts;  // readouts with one byte more
  const auto segments = [&](std::uint64_t bytes) { return (bytes + traffic.segment_bytes() - 1) / traffic.segment_bytes(); };
  const std::uint64_t packets = (topology.readouts - larger) * segments(share) + larger * segments(share + 1);
  return static_cast<double>(traffic.event_bytes + packets * traffic.header_bytes());
}

Result<void> check(const SwitchBuffer& buffer, const Traffic& traffic) {
  const std::uint64_t cell = buffer.cell_bytes;
  const std::uint64_t metadata = buffer.first_cell_metadata_bytes;
  const std::uint64_t frame = traffic.mtu_bytes + traffic.ethernet_bytes;
  const std::uint64_t held = cell == 0 ? frame : (frame + metadata + cell - 1) / cell * cell;
  const std::uint64_t dedicated = std::min(buffer.dedicated_bytes_per_port, held);
  return first_of(
      {{cell > 65'536 || (cell != 0 && metadata >= cell), "network.size",
        fmt::format("cells of {} B with {} B of metadata in the first leave nothing for a frame", cell, metadata),
        "give cells of at most 64 KiB, and less metadata than a cell has"},
       {buffer.shared_bytes.value_or(held) < held - dedicated || buffer.port_limit_bytes.value_or(held) < held,
        "network.size", fmt::format("the switch has no room for one packet of {} B", held),
        "give the buffer more, or a smaller MTU"},
       {!(buffer.dynamic_threshold >= 0 && buffer.dynamic_threshold <= 1024), "network.size",
        fmt::format("a dynamic threshold of {} makes no sense", buffer.dynamic_threshold),
        "give alpha between 0 (none) and 1024"}});
}

std::string slower_than_asked(const Topology& topology, const Traffic& traffic) {
  const double readout = traffic.event_rate_hz * topology.racks;
  const double node = readout / topology.nodes;
  const auto behind = [](std::string_view who, double service_hz, double asked_hz) {
    return fmt::format("{} accepts {:g} Hz but gets {:g} Hz: events wait for it, longer and longer during the run", who,
                       service_hz, asked_hz);
  };
  if (traffic.readout_service_hz > 0 && traffic.readout_service_hz < readout)
    return behind("a readout", traffic.readout_service_hz, readout);
  if (traffic.node_service_hz > 0 && traffic.node_service_hz < node)
    return behind("a node's server", traffic.node_service_hz, node);
  return "";
}

Result<void> check(const Topology& topology, const Traffic& traffic, double fullest) {
  RODEO_TRY(check_counts(topology, traffic));
  RODEO_TRY(check_sizes(topology, traffic));
  RODEO_TRY(check_shape(topology));
  const double rate = traffic.event_rate_hz;
  const double bits = 8 * wire_bytes_per_event(topology, traffic);
  // Requests and acknowledgements, one for two packets, take the way back.
  const double back = 8.0 * (topology.readouts * (traffic.header_bytes() + traffic.request_bytes) +
                             bits / 8 / traffic.mtu_bytes / 2 * traffic.header_bytes());
  struct Link {
    const char* name;
    std::uint64_t bps;
    double bits;  // bits of an event of one rack
  };
  const std::uint32_t nodes = topology.nodes / topology.racks;
  for (const auto& [name, bps, asked] :
       {Link{"a rack's uplink", topology.uplink_bps, bits}, Link{"a node's link", topology.node_link_bps, bits / nodes},
        Link{"a readout's link", topology.readout_link_bps, topology.racks * bits / topology.readouts},
        Link{"a node's link, with requests and acknowledgements,", topology.node_link_bps, back / nodes},
        Link{"a rack's uplink, with requests and acknowledgements,", topology.uplink_bps, back}}) {
    const double carried = static_cast<double>(bps) * fullest;
    if (rate * asked <= carried) continue;
    return std::unexpected(
        Error{"network.overload",
              fmt::format("{} would have to carry {:.4g} Gb/s, headers included, but carries {:.4g}", name,
                          rate * asked * 1e-9, carried * 1e-9),
              "", fmt::format("at this event size the rate may be {:.4g} kHz at most", carried / asked * 1e-3)});
  }
  return {};
}

}  // namespace rodeo::network
