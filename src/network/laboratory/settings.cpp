#include "network/laboratory/settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "network/formula/wire.h"

namespace rodeo::network::laboratory {

namespace {

constexpr double kFullestLink = 0.98;  // above, a queue of real TCP never ends
constexpr std::uint32_t kMostHosts = 250;
constexpr std::uint64_t kMostShared = 8'000'000'000;
constexpr std::uint64_t kLargestFragment = std::uint64_t{1} << 30;

std::unexpected<Error> refuse(std::string_view code, std::string what, std::string next) {
  return std::unexpected(Error{std::string(code), std::move(what), "", std::move(next)});
}

Result<void> check_load(double offered_bps, double link_bps, std::string_view link, double event_rate_hz) {
  if (offered_bps <= kFullestLink * link_bps) return {};
  return refuse("network.overload",
                fmt::format("{} would have to carry {:.4g} Mb/s of its {:.4g} Mb/s, headers included", link,
                            offered_bps * 1e-6, link_bps * 1e-6),
                fmt::format("lower --rate to {:.4g}Hz or less, or the event size, or give it a faster link",
                            std::floor(event_rate_hz * kFullestLink * link_bps / offered_bps * 100) / 100));
}

Result<void> check_buffer(const SwitchBuffer& buffer) {
  if (buffer.virtual_output_queues)
    return refuse("network.unsupported", "the laboratory's switch has no virtual output queues",
                  "use a shared buffer, or measure such a switch: --hosts, --driver");
  if (buffered_by_shapers(buffer) && *buffer.port_limit_bytes > 2'000'000'000)
    return refuse("network.unsupported", "a port's buffer is at most 2 GB here", "give less, or infinite");
  if (buffer.shared_bytes.value_or(0) > kMostShared)
    return refuse("network.unsupported", "the laboratory's switch has at most 8 GB", "give less, or infinite");
  if ((buffer.dynamic_threshold > 0 || buffer.dedicated_bytes_per_port > 0) && !buffer.shared_bytes)
    return refuse("network.unsupported", "a dynamic threshold or memory of ports says nothing without shared memory",
                  "add --buffer shared:SIZE");
  return {};
}

}  // namespace

bool buffered_by_shapers(const SwitchBuffer& buffer) {
  return buffer.port_limit_bytes && !buffer.shared_bytes && buffer.cell_bytes == 0;
}

Result<void> check(const Settings& settings) {
  const Topology& topology = settings.topology;
  const Traffic& traffic = settings.traffic;
  if (topology.readouts > kMostHosts || topology.nodes > kMostHosts)
    return refuse(
        "network.unsupported",
        fmt::format("{} readouts and {} nodes are more than the laboratory makes", topology.readouts, topology.nodes),
        fmt::format("use at most {} of each", kMostHosts));
  RODEO_TRY(network::check(topology, traffic));
  if (traffic.event_bytes / topology.readouts > kLargestFragment)
    return refuse("network.unsupported", "a fragment would be larger than 1 GiB", "give a smaller --event-size");
  if (traffic.assignment == Assignment::least_loaded)
    return refuse("network.unsupported",
                  "the laboratory's nodes know their events beforehand, so none can go to the least loaded",
                  "use round-robin or random");
  if (settings.traffic.events_in_flight == 0 || settings.repeats == 0 || !(settings.seconds > 0))
    return refuse("network.zero", "events in flight, repeats and duration are at least 1, 1 and more than 0", "");
  if (settings.seconds > 86'400)
    return refuse("network.unsupported", "a run of more than a day", "give a shorter --duration");
  RODEO_TRY(network::check(settings.buffer, traffic));
  RODEO_TRY(check_buffer(settings.buffer));
  const auto wire = RODEO_TRY(wire_size(traffic.event_bytes, traffic.mtu_bytes, topology.readouts));
  const double offered = static_cast<double>(wire.wire_bytes) * 8 * traffic.event_rate_hz;
  RODEO_TRY(check_load(offered, static_cast<double>(topology.uplink_bps), "the uplink", traffic.event_rate_hz));
  if (settings.limit_readout_links)
    RODEO_TRY(check_load(offered * topology.racks / topology.readouts, static_cast<double>(topology.readout_link_bps),
                         "each readout's link", traffic.event_rate_hz));
  return check_load(offered * topology.racks / topology.nodes, static_cast<double>(topology.node_link_bps),
                    "each node's link", traffic.event_rate_hz);
}

double warm_up_seconds(const Settings& settings) {
  return std::max(0.2, 6.0 * settings.topology.nodes / settings.topology.racks / settings.traffic.event_rate_hz);
}

}  // namespace rodeo::network::laboratory
