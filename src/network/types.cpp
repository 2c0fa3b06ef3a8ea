#include "network/types.h"

#include <algorithm>

#include <fmt/core.h>

namespace rodeo::network {

namespace {

Result<void> positive(double value, std::string_view name, std::string_view next) {
  if (value > 0) return {};
  return std::unexpected(
      Error{"network.zero", fmt::format("{} is {}, which no network has", name, value), "", std::string(next)});
}

}  // namespace

Result<Topology> topology_preset(std::string_view name) {
  Topology topology;  // its defaults are the laboratory of 2023
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
    // Paper §3.1: 27 MB shared, 5 MB dedicated over 48 ports; cells: Juniper, "QFX5K-Series Switches Packet Buffer Architecture" (2025).
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

Result<void> refuse(std::string_view code, std::string what, std::string_view next) {
  return std::unexpected(Error{std::string(code), std::move(what), "", std::string(next)});
}

Result<void> check_sizes(const Topology& topology, const Traffic& traffic) {
  if (traffic.mtu_bytes < traffic.ip_tcp_bytes + 64 || traffic.mtu_bytes > 65'535) {
    return refuse("network.size",
                  fmt::format("an MTU of {} B does not hold {} B of headers and data, or is above 65535", traffic.mtu_bytes,
                              traffic.ip_tcp_bytes),
                  "give 1500 or 9000");
  }
  if (traffic.ethernet_bytes > 1000 || traffic.ip_tcp_bytes > 1000 || traffic.header_bytes() == 0) {
    return refuse("network.size", fmt::format("{} B of headers are not those of a packet", traffic.header_bytes()),
                  "give between 1 and 1000 B");
  }
  if (traffic.event_bytes < topology.readouts) {
    return refuse("network.size",
                  fmt::format("an event of {} B leaves less than a byte for each of {} readouts", traffic.event_bytes,
                              topology.readouts),
                  "give larger events or fewer readouts");
  }
  if (traffic.event_bytes / topology.readouts > 100'000'000) {
    return refuse("network.size",
                  fmt::format("a fragment of {} B is more than the model takes", traffic.event_bytes / topology.readouts),
                  "give at most 100 MB for each readout");
  }
  // A normal distribution is cut at nothing, and every one at 16 times the mean: wider ones would have another mean than asked for.
  const double widest = traffic.size_spread == SizeSpread::normal ? 0.4 : 1.0;
  if (!(traffic.size_sigma >= 0 && traffic.size_sigma <= widest)) {
    return refuse("network.size",
                  fmt::format("a relative deviation of {} is not possible for these sizes, of which none is below nothing",
                              traffic.size_sigma),
                  "give at most 0.4 for a normal distribution, at most 1 for a log-normal one");
  }
  if (traffic.size_sigma > 0 && traffic.size_spread == SizeSpread::fixed) {
    return refuse("network.size",
                  fmt::format("a relative deviation of {} is given, but the spread of sizes is fixed", traffic.size_sigma),
                  "add a spread: normal or log-normal");
  }
  if (!(traffic.jitter_periods >= 0 && traffic.jitter_periods <= 10'000)) {
    return refuse("network.size", fmt::format("a jitter of {} periods makes no sense", traffic.jitter_periods),
                  "give between 0 and 10000");
  }
  if (!(traffic.event_rate_hz >= 1e-3 && traffic.event_rate_hz <= 1e9)) {
    return refuse("network.size", fmt::format("an event rate of {} Hz is beyond the model", traffic.event_rate_hz),
                  "give between 1 mHz and 1 GHz");
  }
  if (traffic.request_bytes > 9000 || traffic.request_bytes == 0) {
    return refuse("network.size", fmt::format("a request of {} B is not one packet", traffic.request_bytes),
                  "give 1 to 9000 B");
  }
  return {};
}

Result<void> check_shape(const Topology& topology) {
  if (topology.nodes % topology.racks != 0) {
    return refuse("network.topology",
                  fmt::format("{} filter nodes cannot be split evenly over {} racks", topology.nodes, topology.racks),
                  "give a multiple of the racks");
  }
  if (static_cast<std::uint64_t>(topology.readouts) * topology.nodes > (1u << 21)) {
    return refuse("network.topology",
                  fmt::format("{} readouts x {} nodes are more than 2097152 connections", topology.readouts, topology.nodes),
                  "take fewer racks: they are largely independent");
  }
  if (topology.readouts > 65'536 || topology.uplinks > 1024) {
    return refuse(
        "network.topology",
        fmt::format("{} readouts or {} uplinks are more than the model takes", topology.readouts, topology.uplinks),
        "give at most 65536 readouts and 1024 uplinks");
  }
  for (const std::uint64_t speed :
       {topology.readout_link_bps, topology.uplink_bps / topology.uplinks, topology.node_link_bps}) {
    if (speed < 1'000'000 || speed > 100'000'000'000'000) {
      return refuse("network.topology", fmt::format("a link of {} b/s is beyond the model", speed),
                    "give between 1Mbps and 100Tbps");
    }
  }
  if (topology.propagation_ns > 1'000'000'000) {
    return refuse("network.topology",
                  fmt::format("a propagation delay of {} ns is beyond the model", topology.propagation_ns),
                  "give at most 1s");
  }
  return {};
}

/// Bits per second that a link would have to carry.
Result<void> carries(std::string_view link, std::uint64_t capacity_bps, double offered_bps, double rate_hz) {
  if (offered_bps <= static_cast<double>(capacity_bps)) return {};
  return refuse("network.overload",
                fmt::format("{} would have to carry {:.4g} Gb/s, headers included, but carries {:.4g}", link,
                            offered_bps * 1e-9, static_cast<double>(capacity_bps) * 1e-9),
                fmt::format("at this event size the rate may be {:.4g} kHz at most",
                            rate_hz * static_cast<double>(capacity_bps) / offered_bps * 1e-3));
}

}  // namespace

double wire_bytes_per_event(const Topology& topology, const Traffic& traffic) {
  const std::uint64_t share = traffic.event_bytes / topology.readouts;
  const std::uint64_t larger = traffic.event_bytes % topology.readouts;  // readouts that have a byte more
  const auto segments = [&](std::uint64_t bytes) { return (bytes + traffic.segment_bytes() - 1) / traffic.segment_bytes(); };
  const std::uint64_t packets = (topology.readouts - larger) * segments(share) + larger * segments(share + 1);
  return static_cast<double>(traffic.event_bytes + packets * traffic.header_bytes());
}

Result<void> check(const SwitchBuffer& buffer, const Traffic& traffic) {
  const std::uint64_t cell = buffer.cell_bytes;
  const std::uint64_t metadata = buffer.first_cell_metadata_bytes;
  if (cell > 65'536 || (cell != 0 && metadata >= cell)) {
    return refuse("network.size",
                  fmt::format("cells of {} B with {} B of metadata in the first leave nothing for a frame", cell, metadata),
                  "give cells of at most 64 KiB, and less metadata than a cell has");
  }
  const std::uint64_t frame = traffic.mtu_bytes + traffic.ethernet_bytes;
  const std::uint64_t held = cell == 0 ? frame : (frame + metadata + cell - 1) / cell * cell;
  const std::uint64_t dedicated = std::min(buffer.dedicated_bytes_per_port, held);
  if ((buffer.shared_bytes && *buffer.shared_bytes < held - dedicated) || buffer.port_limit_bytes.value_or(held) < held) {
    return refuse("network.size", fmt::format("the switch has no room for one packet of {} B", held),
                  "give the buffer more, or a smaller MTU");
  }
  if (!(buffer.dynamic_threshold >= 0 && buffer.dynamic_threshold <= 1024)) {
    return refuse("network.size", fmt::format("a dynamic threshold of {} makes no sense", buffer.dynamic_threshold),
                  "give alpha between 0 (none) and 1024");
  }
  return {};
}

std::string slower_than_asked(const Topology& topology, const Traffic& traffic) {
  const double readout = traffic.event_rate_hz * topology.racks;
  const double node = readout / topology.nodes;
  const auto behind = [](std::string_view who, double service_hz, double asked_hz) {
    return fmt::format("{} takes {:g} Hz but is asked for {:g} Hz: events wait for it, the longer the run the longer", who,
                       service_hz, asked_hz);
  };
  if (traffic.readout_service_hz > 0 && traffic.readout_service_hz < readout)
    return behind("a readout", traffic.readout_service_hz, readout);
  if (traffic.node_service_hz > 0 && traffic.node_service_hz < node)
    return behind("a node's server", traffic.node_service_hz, node);
  return "";
}

Result<void> check(const Topology& topology, const Traffic& traffic) {
  const std::string_view count = "give at least 1";
  const std::string_view speed = "give a rate above 0, for example 25Gbps";
  for (const Result<void>& result : {
           positive(topology.readouts, "the number of readouts", count),
           positive(topology.nodes, "the number of filter nodes", count),
           positive(topology.racks, "the number of racks", count),
           positive(topology.uplinks, "the number of uplinks", count),
           positive(static_cast<double>(topology.readout_link_bps), "the readout link", speed),
           positive(static_cast<double>(topology.uplink_bps), "the uplink", speed),
           positive(static_cast<double>(topology.node_link_bps), "the node link", speed),
           positive(static_cast<double>(traffic.event_bytes), "the event size", "give a size above 0, for example 5MB"),
           positive(traffic.event_rate_hz, "the event rate", "give a rate above 0, for example 12kHz"),
       }) {
    if (!result) return result;
  }
  RODEO_TRY(check_sizes(topology, traffic));
  RODEO_TRY(check_shape(topology));
  const double rate = traffic.event_rate_hz;
  const double bits = 8 * wire_bytes_per_event(topology, traffic);
  const std::uint32_t whole_nodes_per_rack = topology.nodes / topology.racks;
  const double nodes_per_rack = whole_nodes_per_rack;
  RODEO_TRY(carries("a rack's uplink", topology.uplink_bps, rate * bits, rate));
  RODEO_TRY(carries("a node's link", topology.node_link_bps, rate * bits / nodes_per_rack, rate));
  RODEO_TRY(carries("a readout's link", topology.readout_link_bps, rate * topology.racks * bits / topology.readouts, rate));
  // Requests and acknowledgements, one for two packets, take the way back.
  const double back = 8.0 * (topology.readouts * (traffic.header_bytes() + traffic.request_bytes) +
                             bits / 8 / traffic.mtu_bytes / 2 * traffic.header_bytes());
  RODEO_TRY(carries("a node's link, with requests and acknowledgements,", topology.node_link_bps,
                    rate * back / nodes_per_rack, rate));
  return carries("a rack's uplink, with requests and acknowledgements,", topology.uplink_bps, rate * back, rate);
}

}  // namespace rodeo::network
