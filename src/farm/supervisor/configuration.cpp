#include "farm/supervisor/configuration.h"

#include <fmt/format.h>

#include <algorithm>

#include "process/configuration.h"
#include "settings/effective.h"
#include "trigger/connection.h"

namespace rodeo::farm {

const Settings<SupervisorKeys>& supervisor_settings() {
  using S = SupervisorKeys;
  using dispatch::Policy;
  constexpr SettingRules kTime{.minimum = 0, .maximum = 3.6e12};
  constexpr SettingRules kSomeTime{.minimum = 1e6, .maximum = 3.6e12};
  static const Settings<S> settings{
      setting(&S::name, "name", "Name of the process, and of its service on the bus, which nodes search."),
      setting(&S::trigger, "trigger",
              "The trigger authority: NAME (a Unix socket in the runtime directory) or HOST:PORT, as in the emulator's "
              "emulator.trigger.serve. Empty: no authority; events are those that the readouts hold."),
      setting(&S::trigger_secret_file, "trigger_secret_file",
              "File with the secret of the trigger authority (emulator.trigger.secret_file); only its owner may read it. "
              "Required for HOST:PORT beyond loopback."),
      setting(&S::system, "system", "System of the trigger authority (emulator.trigger.system)."),
      setting(&S::seed, "seed", "Seed of provable payload, the same as the trigger authority's.",
              {.minimum = 0, .maximum = 9e15}),
      setting(&S::readouts, "readouts", "Names of the services of the readouts: NAME.CONSUMER.", {.required = true}),
      setting(&S::recorders, "recorders", "Names of the services of the recorders."),
      setting(&S::assignment, "assignment",
              {{"least_loaded", Policy::least_loaded}, {"round_robin", Policy::round_robin}, {"random", Policy::random}},
              "Which node with a free slot gets an event: the one with fewest events, the next in turn, or any."),
      setting(&S::nodes, "nodes",
              "Number of filter nodes. A restarted supervisor assigns events that only readouts named as soon as all nodes "
              "are back, not only after rebuild_time. 0: not known.",
              {.maximum = 65535}),
      setting(&S::most_nodes, "most_nodes", "Nodes that may be connected at a time.", {.minimum = 1, .maximum = 65535}),
      setting(&S::run_number, "run_number", "Number of the run, unless run control gives it (--hold).",
              {.minimum = 1, .maximum = 0x7fffffff}),
      setting(&S::run_type, "run_type", {{"physics", 0}, {"calibration", 1}, {"cosmics", 2}, {"test", 0xf}},
              "Kind of run, as in the ATLAS event header."),
      setting(&S::events_in_flight, "events_in_flight",
              "Room for events, from trigger to clear: rate times the longest time that an event takes. A sixteenth is kept "
              "for events that readouts hold and no trigger announced; the trigger is busy when the rest is full.",
              {.minimum = 16, .maximum = 1 << 26}),
      setting(
          &S::event_timeout, "event_timeout",
          "If a node has not decided an event after this time, the event is assigned again, to be built and recorded only.",
          kSomeTime),
      setting(&S::lost_after, "lost_after",
              "An event is lost if all readouts answer this long after its first assignment, and none has a fragment of "
              "it: a restart of a readout has lost the fragments. Set it longer than processes may stand still.",
              kSomeTime),
      setting(&S::clear_count, "clear_count", "Number of decided events that are cleared together.",
              {.minimum = 1, .maximum = 65536}),
      setting(&S::clear_after, "clear_after",
              "Longest time that a decided event waits for further events to be cleared with it.", kTime),
      setting(
          &S::readout_grace, "readout_grace",
          "How long events wait for a readout that is away. After that its fragments are lost, unless another readout holds "
          "them.",
          kSomeTime),
      setting(&S::readout_silence, "readout_silence", "How long a connected readout may be silent before it counts as away.",
              kSomeTime),
      setting(&S::node_grace, "node_grace", "How long a node may be away, or silent, before its events are assigned again.",
              kSomeTime),
      setting(&S::rebuild_time, "rebuild_time",
              "After its start: how long it waits at most for readouts, and for nodes that have events, before it assigns "
              "the undecided events.",
              kTime),
      setting(&S::poll_holdings, "poll_holdings",
              "Without a trigger authority: pause between two requests to a readout for new events. With one: the pause is "
              "twenty times as long, after triggers that were not announced to the supervisor.",
              kSomeTime),
      setting(&S::assign_after, "assign_after",
              "Without a trigger authority: an event is assigned when all readouts have it, or this long after the first of "
              "them had it.",
              kTime),
      setting(&S::work_patience, "work_patience",
              "Without news for a node, the supervisor answers its request after this time.", kSomeTime),
      setting(&S::drain_time, "drain_time",
              "At the end of a run: how long it waits for events under way, within stop_limit. Then it ends, and reports "
              "the undecided events.",
              kTime),
      setting(&S::lumi_block, "lumi_block",
              "Without a trigger authority: length of a luminosity block. 0s: all events are of block 1.", kTime),
      setting(&S::decisions, "decisions",
              "File to which each decision is appended, 9 bytes a decision (docs/reference/formats/assignments.md), before "
              "a node may drop it. Empty: none."),
      setting(&S::idle, "idle",
              {{"sleep", base::IdlePolicy::sleep}, {"yield", base::IdlePolicy::yield}, {"spin", base::IdlePolicy::spin}},
              "What its thread does without work: sleep is kind to the machine, spin gives the lowest latency."),
      setting(&S::network, network_settings()),
      setting(&S::control, "control",
              "Listens on a control socket in the runtime directory, for `rodeo top` and the control room."),
      process::stop_limit_setting<S>(),
  };
  return settings;
}

std::expected<SupervisorConfiguration, settings::ConfigurationErrors> configure_supervisor(
    const settings::Configuration& configuration) {
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
  return SupervisorConfiguration{.settings = keys,
                                 .control_socket = keys.control,
                                 .metrics_listen = metrics.parameters().text("listen"),
                                 .configuration_sha256 = settings::configuration_sha256(configuration)};
}

}  // namespace rodeo::farm
