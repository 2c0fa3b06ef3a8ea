#include "router/plan.h"

#include "process/process_keys.h"
#include "router/setting_tables.h"

namespace rodeo::router {

std::expected<RouterPlan, settings::ConfigurationErrors> plan_router(const settings::Configuration& configuration) {
  const settings::Table& router = *configuration.table("router");
  const settings::Table& input = *router.table("input");
  const settings::Table& metrics = *router.table("metrics");
  const RouterKeys keys = router_settings().read(router.parameters());
  settings::ConfigurationErrors errors;
  process::refuse_other_than_plain_name(router, "name", errors);
  process::refuse_bad_listen(metrics, errors);
  if (!errors.empty()) return std::unexpected(std::move(errors));
  RouterPlan plan{.settings = keys, .control_socket = keys.control, .metrics_listen = metrics.parameters().text("listen")};
  plan.settings.input = {.type = input.type(), .parameters = input.parameters(), .where = input.where()};
  return plan;
}

}  // namespace rodeo::router
