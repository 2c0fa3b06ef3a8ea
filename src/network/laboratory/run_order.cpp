#include "network/laboratory/run_order.h"

#include <fmt/format.h>

#include "network/laboratory/line_process.h"
#include "network/laboratory/settings.h"
#include "network/scenario_settings.h"

namespace rodeo::network::laboratory {

namespace {

constexpr double kMostEvents = 1e9;
constexpr double kLongest = 1e6;  // seconds
constexpr std::uint64_t kLatest = std::uint64_t{1} << 62;

}  // namespace

Json json_of(const RunOrder& order) {
  Json settings = Json::object();
  for (const ScenarioSetting& one : scenario_settings()) settings[one.key.name] = one.text(order.scenario);
  return Json::object({{"do", "run"},
                       {"node", order.node},
                       {"start_ns", order.start_ns},
                       {"drain_ns", order.drain_ns},
                       {"settings", std::move(settings)}});
}

Result<RunOrder> run_order_of(const Json& said) {
  for (const char* const name : {"node", "start_ns", "drain_ns"}) {
    const Json& number = member_of(said, name);
    if (!number.is_unsigned() && !(number.is_signed() && number.signed_integer() >= 0))
      return std::unexpected(Error{"network.agent", fmt::format("a run needs a `{}` that is a whole number", name)});
  }
  NamedTexts texts;
  for (const auto& [name, text] : member_of(said, "settings").members()) texts.emplace_back(name, text.string());
  const Scenario scenario = RODEO_TRY(scenario_of(texts));
  RODEO_TRY(network::check(scenario.topology, scenario.traffic));
  const std::uint64_t node = member_of(said, "node").unsigned_integer();
  const RunOrder order{.scenario = scenario,
                       .node = static_cast<std::uint32_t>(node),
                       .start_ns = member_of(said, "start_ns").unsigned_integer(),
                       .drain_ns = member_of(said, "drain_ns").unsigned_integer()};
  const double seconds = static_cast<double>(scenario.duration_ns) * 1e-9 + warm_up_seconds(scenario);
  if (node >= scenario.topology.nodes || order.start_ns > kLatest || order.drain_ns > kLatest ||
      scenario.traffic.events_in_flight == 0 || seconds > kLongest || scenario.traffic.event_rate_hz * seconds > kMostEvents)
    return std::unexpected(Error{"network.agent", "such a run cannot be scheduled"});
  return order;
}

}  // namespace rodeo::network::laboratory
