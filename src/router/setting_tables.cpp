#include "router/setting_tables.h"

#include "process/process_keys.h"

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

}  // namespace rodeo::router
