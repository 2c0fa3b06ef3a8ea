#include "router/configuration.h"

#include <fmt/format.h>

#include <string_view>

#include "input/card_ids.h"
#include "process/configuration.h"
#include "settings/effective.h"

namespace rodeo::router {

const Settings<RouterKeys>& router_settings() {
  using R = RouterKeys;
  static const Settings<R> settings{
      setting(&R::name, "name",
              "Name of the process: names its control socket, and its readers on the bus: NAME.0, NAME.1, ..."),
      setting(&R::plugins, "plugins",
              "Plug-in libraries to load, by name (libNAME.so in the search path) or by path (with a /, relative to this "
              "file)."),
      setting(&R::plugin_directories, "plugin_directories",
              "Directories to look for plug-ins in, relative to this file; searched after RODEO_PLUGIN_PATH."),
      setting(&R::readers, "readers",
              "Threads that read and publish; links are split evenly over them. 0: one for each DMA channel of a card, "
              "that is, each set of links with the same detector and connector id. A trigger list has its own reader.",
              {.maximum = 256}),
      setting(&R::cpus, "cpus", "CPUs that the readers are pinned to, one each; empty leaves them free.", {.maximum = 4095}),
      setting(
          &R::idle, "idle",
          {{"sleep", base::IdlePolicy::sleep}, {"yield", base::IdlePolicy::yield}, {"spin", base::IdlePolicy::spin}},
          "What a reader does when there is nothing to do: sleep is kind to the machine, spin gives the lowest latency."),
      setting(&R::publisher, transport::publisher_keys()),
      setting(&R::wait_for_subscribers, "wait_for_subscribers",
              "Starts the input only when every link has a subscriber of data."),
      setting(&R::control, "control",
              "Listens on a control socket in the runtime directory, for `rodeo route status` and `stop`."),
      process::stop_limit_setting<R>(),
  };
  return settings;
}

const Settings<FrontEndSettings>& front_end_settings() {
  using F = FrontEndSettings;
  static const Settings<F> settings{
      setting(&F::enabled, "enabled",
              "Other processes may send to the front-ends of the input's cards, as `rodeo route send` does; each link has "
              "one owner at a time."),
      setting(&F::bytes_per_second, "bytes_per_second",
              "Most bytes a second to one link; further messages wait, and so does their sender.",
              {.minimum = 1, .maximum = 1e10, .unit = Unit::bytes}),
  };
  return settings;
}

std::vector<settings::TableDeclaration> router_tables() {
  return {{.path = "router",
           .help = "One router process: an input, and readers that publish its links on the network.",
           .keys = router_settings().keys(),
           .optional = true},
          {.path = "router.input", .help = "Where chunks come from.", .component = settings::ComponentKind::input},
          {.path = "router.front_ends",
           .help = "The connection to the front-ends, through the cards of [router.input].",
           .keys = front_end_settings().keys()},
          {.path = "router.metrics",
           .help = "Metrics of the router in Prometheus' text format, over HTTP at /metrics.",
           .keys = process::metrics_keys()}};
}

std::expected<RouterConfiguration, settings::ConfigurationErrors> configure_router(
    const settings::Configuration& configuration) {
  const settings::Table& router = *configuration.table("router");
  const settings::Table& input = *router.table("input");
  const settings::Table& metrics = *router.table("metrics");
  const RouterKeys keys = router_settings().read(router.parameters());
  settings::ConfigurationErrors errors;
  process::refuse_other_than_plain_name(router, "name", errors);
  input::refuse_bad_cards(input, errors);
  process::refuse_bad_listen(metrics, errors);
  if (!errors.empty()) return std::unexpected(std::move(errors));
  RouterConfiguration out{
      .settings = keys, .control_socket = keys.control, .metrics_listen = metrics.parameters().text("listen")};
  out.configuration_sha256 = settings::configuration_sha256(configuration);
  out.settings.front_ends = front_end_settings().read(router.table("front_ends")->parameters());
  constexpr std::size_t kMostName = 64 - std::string_view(".front_ends").size();
  if (out.settings.front_ends.enabled && out.settings.name.size() > kMostName)
    return std::unexpected(settings::ConfigurationErrors{
        {"config.bad_value", fmt::format("the name of a router with front_ends has at most {} letters", kMostName),
         router.where(), "choose a shorter one"}});
  if (out.settings.front_ends.enabled && input.type() != "card")
    return std::unexpected(settings::ConfigurationErrors{
        {"config.bad_value", "front_ends needs cards, and [router.input] has none", router.table("front_ends")->where(),
         "leave enabled out, or read cards: type = \"card\""}});
  out.settings.input = {.type = input.type(), .parameters = input.parameters(), .where = input.where()};
  return out;
}

}  // namespace rodeo::router
