#include "network/laboratory/settings.h"

#include <fmt/core.h>

#include <algorithm>

namespace rodeo::network::laboratory {

namespace {

constexpr double kFullestLink = 0.98;  // above this load, queues of real TCP never empty
constexpr std::uint32_t kMostHosts = 250;
constexpr std::uint64_t kMostShared = 8'000'000'000;
constexpr std::uint64_t kLongestRunNs = 86'400'000'000'000;

/// The first setting that is not possible in the laboratory.
struct Refusal {
  bool refused;
  std::string_view what;
  std::string_view next;
};

Result<void> first_of(std::initializer_list<Refusal> refusals) {
  for (const auto& [refused, what, next] : refusals) {
    if (refused) return std::unexpected(Error{"network.unsupported", std::string(what), "", std::string(next)});
  }
  return {};
}

}  // namespace

bool buffered_by_shapers(const SwitchBuffer& buffer) {
  return buffer.port_limit_bytes && !buffer.shared_bytes && buffer.cell_bytes == 0;
}

Result<void> check(const SwitchBuffer& buffer) {
  const bool of_shared = buffer.dynamic_threshold > 0 || buffer.dedicated_bytes_per_port > 0;
  return first_of(
      {{buffer.virtual_output_queues, "the laboratory's switch has no virtual output queues",
        "use a shared buffer, or measure such a switch: --hosts, --driver"},
       {buffered_by_shapers(buffer) && *buffer.port_limit_bytes > 2'000'000'000, "a port's buffer is at most 2 GB here",
        "give less, or infinite"},
       {buffer.shared_bytes.value_or(0) > kMostShared, "the laboratory's switch has at most 8 GB", "give less, or infinite"},
       {of_shared && !buffer.shared_bytes, "a dynamic threshold or memory of ports has no meaning without shared memory",
        "add --buffer shared:SIZE"}});
}

Result<void> check(const Settings& settings) {
  const Topology& topology = settings.topology;
  const Traffic& traffic = settings.traffic;
  RODEO_TRY(first_of(
      {{topology.readouts > kMostHosts || topology.nodes > kMostHosts,
        fmt::format("{} readouts and {} nodes are more than the laboratory makes", topology.readouts, topology.nodes),
        fmt::format("use at most {} of each", kMostHosts)}}));
  RODEO_TRY(network::check(topology, traffic, kFullestLink));
  if (traffic.events_in_flight == 0 || settings.repeats == 0 || settings.duration_ns == 0)
    return std::unexpected(
        Error{"network.zero", "events in flight, repeats and duration are at least 1, 1 and more than 0", "", ""});
  RODEO_TRY(first_of({{traffic.assignment == Assignment::least_loaded,
                       "the laboratory's nodes know their events beforehand, so no event can go to the least loaded node",
                       "use round-robin or random"},
                      {settings.duration_ns > kLongestRunNs, "a run of more than a day", "give a shorter --duration"}}));
  RODEO_TRY(network::check(settings.buffer, traffic));
  return check(settings.buffer);
}

double warm_up_seconds(const Scenario& scenario) {
  return std::max(0.2, 6.0 * scenario.topology.nodes / scenario.topology.racks / scenario.traffic.event_rate_hz);
}

}  // namespace rodeo::network::laboratory
