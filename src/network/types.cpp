#include "network/types.h"

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
  return {};
}

}  // namespace rodeo::network
