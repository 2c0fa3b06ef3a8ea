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
              "Threads that read and publish; links are split evenly over them. 0: one for each card, which is what has "
              "detector "
              "and connector id of its own. A trigger's list has one more, of its own.",
              {.maximum = 256}),
      setting(&R::cpus, "cpus", "CPUs that the readers are pinned to, one each; empty leaves them free.", {.maximum = 4095}),
      setting(
          &R::idle, "idle",
          {{"sleep", base::IdlePolicy::sleep}, {"yield", base::IdlePolicy::yield}, {"spin", base::IdlePolicy::spin}},
          "What a reader does when there is nothing to do: sleep is kind to the machine, spin gives the lowest latency."),
      setting(&R::bus, "bus",
              "Directory in which publishers say where their links are; on a shared file system if subscribers are on other "
              "hosts. Empty: one of this user on this host."),
      setting(&R::address, "address",
              "Numerical address at which it listens. One that other hosts can reach needs secret_file."),
      setting(&R::providers, "providers",
              "Providers of libfabric that subscribers may choose from: tcp, shm, verbs. Empty: all that this machine has."),
      setting(
          &R::secret_file, "secret_file",
          "File with the secret that subscribers must know; only its owner may read it. Empty: none, on loopback alone."),
      setting(&R::page_bytes, "page_bytes", "Size of a page, the unit that is sent.",
              {.minimum = 1024, .maximum = 1 << 20, .unit = Unit::bytes}),
      setting(&R::pages, "pages", "Pages that a subscription may have under way; their memory is taken when it begins.",
              {.minimum = 2, .maximum = 65535}),
      setting(&R::flush, "flush", "A page that is not full is sent after so long. 0s: at once, for the lowest latency.",
              {.minimum = 0}),
      setting(
          &R::grace, "grace",
          "So long a subscriber of data that went away may come back: its data are held. At the end of a run, so long one "
          "that takes nothing is waited for.",
          {.minimum = 0}),
      setting(&R::wait_for_subscribers, "wait_for_subscribers",
              "Starts the input only when every link has a subscriber of data."),
      setting(&R::control, "control",
              "Listens on a control socket in the runtime directory, for `rodeo route status` and `stop`."),
  };
  return settings;
}

std::vector<settings::TableDeclaration> router_tables() {
  return {{.path = "router",
           .help = "One router process: an input, and readers that publish its links on the network.",
           .keys = router_settings().keys(),
           .optional = true},
          {.path = "router.input", .help = "Where chunks come from.", .component = settings::ComponentKind::input},
          {.path = "router.metrics",
           .help = "Metrics of the router in Prometheus' text format, over HTTP at /metrics.",
           .keys = process::metrics_keys()}};
}

}  // namespace rodeo::router
