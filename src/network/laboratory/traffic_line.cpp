#include "network/laboratory/traffic_line.h"

#include <limits>
#include <type_traits>

namespace rodeo::network::laboratory {

namespace {

constexpr double kMostEvents = 1e9;

/// Every field of an order: its name in the line, where it is, and the most that it may be.
template <typename Order, typename Field>
void each_field(Order& order, Field field) {
  auto& settings = order.settings;
  auto& topology = settings.topology;
  auto& traffic = settings.traffic;
  field("start_ns", order.start_ns, 1LL << 62);
  field("node", order.node, 1000);
  field("drain_s", order.drain_seconds, kMostEvents);
  field("readouts", topology.readouts, 1000);
  field("nodes", topology.nodes, 1000);
  field("racks", topology.racks, 1000);
  field("event_bytes", traffic.event_bytes, 1LL << 40);
  field("rate_hz", traffic.event_rate_hz, kMostEvents);
  field("arrivals", traffic.arrivals, 2);
  field("jitter", traffic.jitter_periods, kMostEvents);
  field("assignment", traffic.assignment, 1);
  field("spread", traffic.size_spread, 2);
  field("sigma", traffic.size_sigma, kMostEvents);
  field("in_flight", traffic.events_in_flight, 1'000'000);
  field("seconds", settings.seconds, kMostEvents);
  field("seed", settings.seed, std::numeric_limits<std::int64_t>::max());
}

}  // namespace

Line line_of(const RunOrder& order) {
  Line line("run");
  each_field(order, [&]<typename T>(const char* key, const T& value, auto) {
    if constexpr (std::is_enum_v<T>) {
      line.set(key, static_cast<std::uint32_t>(value));
    } else {
      line.set(key, value);
    }
  });
  return line;
}

Result<RunOrder> run_order_of(const Line& line) {
  RunOrder order;
  Result<void> good;
  each_field(order, [&]<typename T>(const char* key, T& to, auto most) {
    const auto take = [&](const auto& value) {
      if (good && !value) good = std::unexpected(value.error());
      if (good && !(*value >= 0 && *value <= most))
        good = std::unexpected(Error{"network.agent", std::string("out of range: ") + key});
      if (good) to = static_cast<T>(*value);
    };
    if constexpr (std::is_floating_point_v<T>) {
      take(line.number(key));
    } else {
      take(line.integer(key));
    }
  });
  if (!good) return std::unexpected(good.error());
  const Settings& settings = order.settings;
  const Traffic& traffic = settings.traffic;
  if (settings.topology.readouts == 0 || settings.topology.nodes == 0 || settings.topology.racks == 0 ||
      settings.topology.nodes % settings.topology.racks != 0 || traffic.event_bytes == 0 || !(traffic.event_rate_hz > 0) ||
      settings.traffic.events_in_flight == 0 ||
      traffic.event_rate_hz * (settings.seconds + warm_up_seconds(settings)) > kMostEvents)
    return std::unexpected(Error{"network.agent", "such a run cannot be scheduled"});
  return order;
}

}  // namespace rodeo::network::laboratory
