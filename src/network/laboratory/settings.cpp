#include "network/laboratory/settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "network/formula/wire.h"

namespace rodeo::network::laboratory {

namespace {

constexpr double kFullestLink = 0.98;  // above, a queue of real TCP never ends
constexpr std::uint32_t kMostHosts = 250;
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

}  // namespace

Result<void> check(const Settings& settings) {
  const Topology& topology = settings.topology;
  const Traffic& traffic = settings.traffic;
  if (topology.readouts > kMostHosts || topology.nodes > kMostHosts)
    return refuse(
        "network.unsupported",
        fmt::format("{} readouts and {} nodes are more than the laboratory makes", topology.readouts, topology.nodes),
        fmt::format("use at most {} of each", kMostHosts));
  if (topology.racks != 1)
    return refuse("network.unsupported", "the laboratory has one rack", "racks are independent: run one of them");
  if (auto good = network::check(topology, traffic); !good) return good;
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
  const SwitchBuffer& buffer = settings.buffer;
  if (buffer.shared_bytes && buffer.port_limit_bytes)
    return refuse("network.unsupported", "a buffer is either shared or per port here", "give one of the two");
  const std::uint64_t frame = traffic.mtu_bytes + kEthernetBytes;
  for (const auto& bytes : {buffer.shared_bytes, buffer.port_limit_bytes}) {
    if (bytes && *bytes < frame)
      return refuse("network.zero", fmt::format("a buffer of {} bytes cannot hold one frame of {}", *bytes, frame),
                    "give at least one frame");
  }
  if (buffer.port_limit_bytes.value_or(0) > 2'000'000'000)
    return refuse("network.unsupported", "a port's buffer is at most 2 GB here", "give less, or infinite");
  const auto wire = wire_size(traffic.event_bytes, traffic.mtu_bytes, topology.readouts);
  if (!wire) return std::unexpected(wire.error());
  const double offered = static_cast<double>(wire->wire_bytes) * 8 * traffic.event_rate_hz;
  if (auto good = check_load(offered, static_cast<double>(topology.uplink_bps), "the uplink", traffic.event_rate_hz); !good)
    return good;
  if (settings.limit_readout_links) {
    if (auto good = check_load(offered / topology.readouts, static_cast<double>(topology.readout_link_bps),
                               "each readout's link", traffic.event_rate_hz);
        !good)
      return good;
  }
  return check_load(offered / topology.nodes, static_cast<double>(topology.node_link_bps), "each node's link",
                    traffic.event_rate_hz);
}

double warm_up_seconds(const Settings& settings) {
  return std::max(0.2, 6.0 * settings.topology.nodes / settings.traffic.event_rate_hz);
}

}  // namespace rodeo::network::laboratory
