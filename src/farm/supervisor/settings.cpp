#include "farm/supervisor/settings.h"

#include "process/process_keys.h"

namespace rodeo::farm {

const Settings<SupervisorKeys>& supervisor_settings() {
  using S = SupervisorKeys;
  using dispatch::Policy;
  constexpr SettingRules kTime{.minimum = 0, .maximum = 3.6e12};
  constexpr SettingRules kSomeTime{.minimum = 1e6, .maximum = 3.6e12};
  static const Settings<S> settings{
      setting(&S::name, "name", "Name of the process, and of its service on the bus: what nodes are told."),
      setting(&S::trigger, "trigger",
              "The trigger authority: NAME (a Unix socket in the runtime directory) or HOST:PORT, as the emulator's "
              "emulator.trigger.serve says it. Empty: there is none, and events are those that the readouts hold."),
      setting(&S::system, "system", "Of the trigger authority (emulator.trigger.system)."),
      setting(&S::seed, "seed", "Of provable payload, as the trigger authority has it.", {.minimum = 0, .maximum = 9e15}),
      setting(&S::readouts, "readouts", "Names of the services of the readouts: NAME.CONSUMER.", {.required = true}),
      setting(&S::recorders, "recorders", "Names of the services of the recorders."),
      setting(&S::assignment, "assignment",
              {{"least_loaded", Policy::least_loaded}, {"round_robin", Policy::round_robin}, {"random", Policy::random}},
              "Which node with a free slot gets an event: one that has fewest, the next in turn, or any."),
      setting(&S::nodes, "nodes",
              "How many filter nodes there are: a supervisor that was started anew assigns what nobody has told of as soon "
              "as all of them "
              "are back, not only after rebuild_time. 0: not known.",
              {.maximum = 65535}),
      setting(&S::most_nodes, "most_nodes", "Nodes that may be connected at a time.", {.minimum = 1, .maximum = 65535}),
      setting(&S::run_number, "run_number", "The run, where the supervisor is not told it (--hold).",
              {.minimum = 1, .maximum = 0x7fffffff}),
      setting(&S::run_type, "run_type", {{"physics", 0}, {"calibration", 1}, {"cosmics", 2}, {"test", 0xf}},
              "Kind of run, as in the ATLAS event header."),
      setting(
          &S::events_in_flight, "events_in_flight",
          "Events that it has room for, from trigger to clear: rate times the longest time that an event takes. A "
          "sixteenth is kept for events that readouts hold and no trigger told of; the trigger is busy when there are as "
          "many as the others.",
          {.minimum = 16, .maximum = 1 << 26}),
      setting(&S::event_timeout, "event_timeout",
              "An event that its node has not decided after so long is assigned again, to be built and recorded only.",
              kSomeTime),
      setting(
          &S::lost_after, "lost_after",
          "An event that was first assigned so long ago, and of which no readout brings anything though all of them answer, "
          "is lost: its fragments went with a readout that was started anew. Longer than processes may stand still.",
          kSomeTime),
      setting(&S::clear_count, "clear_count", "Readouts are told of so many decided events at once.",
              {.minimum = 1, .maximum = 65536}),
      setting(&S::clear_after, "clear_after", "Or after so long.", kTime),
      setting(
          &S::readout_grace, "readout_grace",
          "How long events wait for a readout that is away. After that its fragments are lost, unless another readout holds "
          "them.",
          kSomeTime),
      setting(&S::readout_silence, "readout_silence",
              "How long a connected readout may not answer before it counts as away.", kSomeTime),
      setting(&S::node_grace, "node_grace", "So long a node may be away, or silent, before its events are assigned again.",
              kSomeTime),
      setting(&S::rebuild_time, "rebuild_time",
              "After its start: so long it waits at most for readouts and for the nodes that have events, before it assigns "
              "what nobody has decided.",
              kTime),
      setting(&S::poll_holdings, "poll_holdings",
              "Without a trigger authority: how often readouts are asked for new events. With one: after triggers that the "
              "supervisor was not told of, twenty times as long.",
              kSomeTime),
      setting(&S::assign_after, "assign_after",
              "Without a trigger authority: an event is assigned when all readouts have it, or so long after one of them "
              "had it.",
              kTime),
      setting(&S::work_patience, "work_patience", "A node that nothing can be said to is answered after so long.",
              kSomeTime),
      setting(
          &S::drain_time, "drain_time",
          "At the end of a run: so long it waits for what is under way, within stop_limit; then it ends, and says what was "
          "undecided.",
          kTime),
      setting(&S::lumi_block, "lumi_block",
              "Without a trigger authority: length of a luminosity block. 0s: all events are of block 1.", kTime),
      setting(&S::decisions, "decisions",
              "File that each decision is appended to, 9 bytes a piece (docs/formats/assignments.md), before any node "
              "forgets it. Empty: none."),
      setting(&S::idle, "idle",
              {{"sleep", base::IdlePolicy::sleep}, {"yield", base::IdlePolicy::yield}, {"spin", base::IdlePolicy::spin}},
              "What it does when there is nothing to do: sleep is kind to the machine, spin gives the lowest latency."),
      setting(&S::network, network_keys()),
      setting(&S::control, "control",
              "Listens on a control socket in the runtime directory, for `rodeo top` and the control room."),
      process::stop_limit_setting<S>(),
  };
  return settings;
}

}  // namespace rodeo::farm
