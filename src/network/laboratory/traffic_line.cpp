#include "network/laboratory/traffic_line.h"

namespace rodeo::network::laboratory {

namespace {

constexpr double kMostEvents = 1e9;

}  // namespace

Line line_of(const RunOrder& order) {
  const Settings& settings = order.settings;
  const Traffic& traffic = settings.traffic;
  Line line("run");
  line.set("start_ns", order.start_ns).set("node", order.node).set("drain_s", order.drain_seconds);
  line.set("readouts", settings.topology.readouts).set("nodes", settings.topology.nodes);
  line.set("racks", settings.topology.racks);
  line.set("event_bytes", traffic.event_bytes).set("rate_hz", traffic.event_rate_hz);
  line.set("arrivals", static_cast<std::uint32_t>(traffic.arrivals)).set("jitter", traffic.jitter_periods);
  line.set("assignment", static_cast<std::uint32_t>(traffic.assignment));
  line.set("spread", static_cast<std::uint32_t>(traffic.size_spread)).set("sigma", traffic.size_sigma);
  line.set("in_flight", settings.traffic.events_in_flight).set("seconds", settings.seconds).set("seed", settings.seed);
  line.set("warm_up_s", warm_up_seconds(settings));
  return line;
}

Result<RunOrder> run_order_of(const Line& line) {
  RunOrder order;
  Result<void> good;
  const auto integer = [&](const char* key, auto& to, std::int64_t most) {
    const auto value = line.integer(key);
    if (good && !value) good = std::unexpected(value.error());
    if (good && (*value < 0 || *value > most))
      good = std::unexpected(Error{"network.agent", std::string("out of range: ") + key});
    if (good) to = static_cast<std::remove_reference_t<decltype(to)>>(*value);
  };
  const auto number = [&](const char* key, double& to) {
    const auto value = line.number(key);
    if (good && !value) good = std::unexpected(value.error());
    if (good && !(*value >= 0 && *value < kMostEvents))
      good = std::unexpected(Error{"network.agent", std::string("out of range: ") + key});
    if (good) to = *value;
  };
  Settings& settings = order.settings;
  Traffic& traffic = settings.traffic;
  integer("start_ns", order.start_ns, std::int64_t{1} << 62);
  integer("node", order.node, 1000);
  number("drain_s", order.drain_seconds);
  integer("readouts", settings.topology.readouts, 1000);
  integer("nodes", settings.topology.nodes, 1000);
  integer("racks", settings.topology.racks, 1000);
  integer("event_bytes", traffic.event_bytes, std::int64_t{1} << 40);
  number("rate_hz", traffic.event_rate_hz);
  integer("arrivals", traffic.arrivals, 2);
  number("jitter", traffic.jitter_periods);
  integer("assignment", traffic.assignment, 1);
  integer("spread", traffic.size_spread, 2);
  number("sigma", traffic.size_sigma);
  integer("in_flight", settings.traffic.events_in_flight, 1'000'000);
  number("seconds", settings.seconds);
  integer("seed", settings.seed, std::numeric_limits<std::int64_t>::max());
  if (!good) return std::unexpected(good.error());
  if (settings.topology.readouts == 0 || settings.topology.nodes == 0 || settings.topology.racks == 0 ||
      settings.topology.nodes % settings.topology.racks != 0 || traffic.event_bytes == 0 || !(traffic.event_rate_hz > 0) ||
      settings.traffic.events_in_flight == 0 ||
      traffic.event_rate_hz * (settings.seconds + warm_up_seconds(settings)) > kMostEvents)
    return std::unexpected(Error{"network.agent", "such a run cannot be scheduled"});
  return order;
}

}  // namespace rodeo::network::laboratory
