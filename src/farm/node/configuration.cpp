#include "farm/node/configuration.h"

#include "formats/fragment_request.h"
#include "process/configuration.h"
#include "settings/effective.h"

namespace rodeo::farm {

const Settings<NodeKeys>& node_settings() {
  using N = NodeKeys;
  using base::IdlePolicy;
  constexpr SettingRules kBytes{.unit = Unit::bytes};
  static const Settings<N> settings{
      setting(&N::name, "name",
              "Name of the process, unique in its farm; its control socket and its supervisor use this name."),
      setting(&N::plugins, "plugins",
              "Plug-in libraries to load, by name (libNAME.so in the search path) or by path (with a /, relative to this "
              "file)."),
      setting(&N::plugin_directories, "plugin_directories",
              "Directories to look for plug-ins in, relative to this file; searched after RODEO_PLUGIN_PATH."),
      setting(&N::supervisor, "supervisor",
              "Name of the supervisor's service on the bus: farm.supervisor.name of its configuration."),
      setting(&N::slots, "events", "Limit of events at a time.", {.minimum = 1, .maximum = 4096}),
      setting(&N::building, "building", {{"full", Building::full}, {"steps", Building::steps}},
              "full fetches all fragments of an event at once, then calls its selection. steps fetches the fragments that "
              "the selection asks for, step by step, and the rest once the event is accepted."),
      setting(&N::workers, "workers", "Threads that run the selection.", {.minimum = 1, .maximum = 256}),
      setting(
          &N::credit_fragments, "credit_fragments",
          "Traffic shaping: limit of the fragments that are asked for at a time; a larger request goes alone. 0: no limit."),
      setting(&N::credit_bytes, "credit_bytes", "The same in bytes, estimated from recent fragments. 0: no limit.", kBytes),
      setting(&N::fetch_wait, "fetch_wait",
              "How long a readout waits for fragments that have not come yet, before it answers that they are pending.",
              {.minimum = 0, .maximum = 1e3 * formats::kMostFetchWaitUs}),
      setting(&N::pending_retry, "retry_interval", "The node asks for pending fragments again after this time."),
      setting(&N::readout_grace, "readout_grace",
              "The node does not wait for a readout that is away for longer; the fragments of that readout are missing."),
      setting(&N::record_timeout, "record_timeout",
              "If a recorder has not answered after this time, the event is sent to it again."),
      setting(&N::recorder_patience, "recorder_patience",
              "If there are several recorders and one is away for longer, the event goes to the next one."),
      setting(&N::most_event_bytes, "max_event_size",
              "Fragments that do not fit into an event of this size are left out, and the event is flagged.",
              {.minimum = 4096, .maximum = 0xf000'0000, .unit = Unit::bytes}),
      setting(&N::event_checksum, "event_checksum", "Adler-32 over the payload of each event that is recorded."),
      setting(&N::idle, "idle", {{"sleep", IdlePolicy::sleep}, {"yield", IdlePolicy::yield}, {"spin", IdlePolicy::spin}},
              "What threads do when there is nothing to do: sleep is kind to the machine, spin gives the lowest latency."),
      setting(&N::network, network_settings()),
      setting(&N::control, "control",
              "Listens on a control socket in the runtime directory, for run control and `rodeo top`."),
      process::stop_limit_setting<N>(),
  };
  return settings;
}

std::expected<NodeConfiguration, settings::ConfigurationErrors> configure_node(
    const settings::Configuration& configuration) {
  const settings::Table& node = *configuration.table("farm.node");
  const settings::Table& selection = *node.table("selection");
  const settings::Table& metrics = *node.table("metrics");
  settings::ConfigurationErrors errors;
  process::refuse_other_than_plain_name(node, "name", errors);
  process::refuse_bad_listen(metrics, errors);
  if (!errors.empty()) return std::unexpected(std::move(errors));
  const NodeKeys keys = node_settings().read(node.parameters());
  NodeConfiguration out{
      .settings = keys, .control_socket = keys.control, .metrics_listen = metrics.parameters().text("listen")};
  out.settings.selection = {.type = selection.type(), .parameters = selection.parameters(), .where = selection.where()};
  out.configuration_sha256 = settings::configuration_sha256(configuration);
  return out;
}

}  // namespace rodeo::farm
