#include "router/plan.h"

#include <fmt/format.h>

#include <string_view>

#include "input/card_ids.h"
#include "process/process_keys.h"
#include "router/setting_tables.h"
#include "settings/effective.h"

namespace rodeo::router {

std::expected<RouterPlan, settings::ConfigurationErrors> plan_router(const settings::Configuration& configuration) {
  const settings::Table& router = *configuration.table("router");
  const settings::Table& input = *router.table("input");
  const settings::Table& metrics = *router.table("metrics");
  const RouterKeys keys = router_settings().read(router.parameters());
  settings::ConfigurationErrors errors;
  process::refuse_other_than_plain_name(router, "name", errors);
  input::refuse_bad_cards(input, errors);
  process::refuse_bad_listen(metrics, errors);
  if (!errors.empty()) return std::unexpected(std::move(errors));
  RouterPlan plan{.settings = keys, .control_socket = keys.control, .metrics_listen = metrics.parameters().text("listen")};
  plan.configuration_sha256 = settings::configuration_sha256(configuration);
  plan.settings.front_ends = front_end_settings().read(router.table("front_ends")->parameters());
  constexpr std::size_t kMostName = 64 - std::string_view(".front_ends").size();
  if (plan.settings.front_ends.enabled && plan.settings.name.size() > kMostName)
    return std::unexpected(settings::ConfigurationErrors{
        {"config.bad_value", fmt::format("the name of a router with front_ends has at most {} letters", kMostName),
         router.where(), "choose a shorter one"}});
  if (plan.settings.front_ends.enabled && input.type() != "card")
    return std::unexpected(settings::ConfigurationErrors{
        {"config.bad_value", "front_ends needs cards, and [router.input] has none", router.table("front_ends")->where(),
         "leave enabled out, or read cards: type = \"card\""}});
  plan.settings.input = {.type = input.type(), .parameters = input.parameters(), .where = input.where()};
  return plan;
}

}  // namespace rodeo::router
