#include "farm/supervisor/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "process/process_keys.h"
#include "settings/effective.h"
#include "trigger/connection.h"

namespace rodeo::farm {

std::expected<SupervisorPlan, settings::ConfigurationErrors> plan_supervisor(const settings::Configuration& configuration) {
  const settings::Table& supervisor = *configuration.table("farm.supervisor");
  const settings::Table& metrics = *supervisor.table("metrics");
  settings::ConfigurationErrors errors;
  process::refuse_other_than_plain_name(supervisor, "name", errors);
  process::refuse_bad_listen(metrics, errors);
  const SupervisorKeys keys = supervisor_settings().read(supervisor.parameters());
  const auto wrong = [&](const char* key, std::string what, std::string next) {
    errors.push_back({"config.bad_value", std::move(what), settings::where_of(supervisor, key), std::move(next)});
  };
  if (keys.readouts.empty())
    wrong("readouts", "a farm without readouts has no events", "name their services: [\"readout.hlt\"]");
  for (const auto& [key, names] : {std::pair{"readouts", &keys.readouts}, std::pair{"recorders", &keys.recorders}}) {
    std::vector<std::string> sorted = *names;
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    if (twice != sorted.end()) wrong(key, fmt::format("`{}` is listed twice", *twice), "list each name once");
  }
  if (!keys.trigger.empty()) {
    const auto address = trigger::TriggerAddress::parse(keys.trigger);
    if (!address) {
      wrong("trigger", address.error().what, address.error().next);
    } else if (const auto secret = address->secret(keys.trigger_secret_file, "farm.supervisor.trigger_secret_file");
               !secret) {
      errors.push_back({secret.error().code, secret.error().what, settings::where_of(supervisor, "trigger_secret_file"),
                        secret.error().next});
    }
  }
  if (!errors.empty()) return std::unexpected(std::move(errors));
  return SupervisorPlan{.settings = keys,
                        .control_socket = keys.control,
                        .metrics_listen = metrics.parameters().text("listen"),
                        .configuration_sha256 = settings::configuration_sha256(configuration)};
}

}  // namespace rodeo::farm
