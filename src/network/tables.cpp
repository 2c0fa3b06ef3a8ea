#include "network/tables.h"

#include <fmt/format.h>

#include "network/scenario_settings.h"

namespace rodeo::network {
namespace {

TableDeclaration scenario_table(std::string_view name, std::string help) {
  TableDeclaration table{.path = fmt::format("network.{}", name), .help = std::move(help)};
  for (const ScenarioSetting& setting : scenario_settings()) {
    if (setting.table == name) table.keys.push_back(setting.key);
  }
  return table;
}

/// Settings of a network's sweep and size are passed to Python as JSON, by name.
struct Size {
  double confidence = 0.99;
  double margin = 0.03;
  std::uint32_t seeds = 40;
  std::uint32_t proof_seeds = 20;
  std::string proof_engine = "packet";
  bool assumptions = true;
};

const Settings<Size> kSize{
    setting(&Size::confidence, "confidence", "Probability that a run of `duration` has no drops, before the margin.",
            {.minimum = 0.5, .maximum = 0.99999}),
    setting(&Size::margin, "margin", "Relative addition to the buffer.", {.minimum = 0, .maximum = 10}),
    setting(&Size::seeds, "seeds", "Runs to which the distribution of the largest occupancy is fitted.",
            {.minimum = 10, .maximum = 10000}),
    setting(&Size::proof_seeds, "proof_seeds",
            "Runs that prove the answer: with it no run may drop packets; with nine tenths of it some run must.",
            {.minimum = 1, .maximum = 1000}),
    setting(&Size::proof_engine, "proof_engine", "Engine of the proof.", {.choices = {"packet", "train"}}),
    setting(&Size::assumptions, "assumptions", "Varies one assumption after the other, to see which dominates."),
};

struct Executor {
  std::string kind = "local";
  std::uint32_t workers = 0;
  std::string scheduler;
  std::string queue;
  std::uint32_t cores = 1;
  std::string memory = "2GB";
  std::string walltime = "01:00:00";
  std::string interface;
  std::vector<std::string> directives;
  std::vector<std::string> prologue;
};

const Settings<Executor> kExecutor{
    setting(&Executor::kind, "kind",
            "Processes of this machine, a Dask scheduler, Dask on this machine, or jobs of a batch system.",
            {.choices = {"local", "dask", "dask-local", "slurm", "htcondor"}}),
    setting(&Executor::workers, "workers", "Processes, or jobs of a batch system; 0: one for each CPU, or one job.",
            {.maximum = 100000}),
    setting(&Executor::scheduler, "scheduler", "Address of a running Dask scheduler, such as tcp://host:8786."),
    setting(&Executor::queue, "queue", "Partition of the batch system; empty: its default."),
    setting(&Executor::cores, "cores", "CPUs of a job.", {.minimum = 1, .maximum = 4096}),
    setting(&Executor::memory, "memory", "Memory of a job."),
    setting(&Executor::walltime, "walltime", "Time limit of a job, as Slurm writes it."),
    setting(&Executor::interface, "interface", "Network interface that scheduler and workers meet on; empty: Dask chooses."),
    setting(&Executor::directives, "directives", "Further lines for the job's description."),
    setting(&Executor::prologue, "prologue", "Shell lines of a job before its worker starts."),
};

}  // namespace

const Settings<Sweep>& sweep_settings() {
  static const Settings<Sweep> settings{
      setting(&Sweep::method, "method",
              "Method of a run. farm is the laboratory with the real readouts, supervisor and filter nodes; without root it "
              "uses loopback, which has no switch.",
              {.choices = {"formula", "simulation", "laboratory", "farm"}}),
      setting(&Sweep::repeats, "repeats", "Runs or searches of each point, with seeds that follow `seed`.",
              {.minimum = 1, .maximum = 100000}),
      setting(&Sweep::seed, "seed", "Seed of the first repeat.", {.maximum = 1e15}),
      setting(&Sweep::search, "search", "Bisection: the highest rate, or the smallest buffer, without drops.",
              {.choices = {"none", "rate", "buffer"}}),
      setting(&Sweep::low, "low", "Start of a search: a rate or a size, according to `search`."),
      setting(&Sweep::high, "high", "End of a search, which is not exceeded."),
      setting(&Sweep::tolerance, "tolerance", "Relative width at which a search stops.", {.minimum = 1e-6, .maximum = 0.5}),
      setting(&Sweep::drops_allowed, "drops_allowed",
              "Share of dropped packets up to which a run counts as a run without drops.", {.minimum = 0, .maximum = 1}),
  };
  return settings;
}

const Settings<SweepAxis>& axis_settings() {
  using A = SweepAxis;
  static const Settings<A> settings{
      setting(&A::key, "key", "Name of the setting, such as event_size or rate.", {.required = true}),
      setting(&A::values, "values", "Values as texts, such as [\"1MB\", \"5MB\"]."),
      setting(&A::from, "from", "First value of a range."),
      setting(&A::to, "to", "Last value of a range."),
      setting(&A::steps, "steps", "How many values a range has, ends included.", {.minimum = 0, .maximum = 100000}),
      setting(&A::log, "scale", {{"linear", false}, {"log", true}}, "How a range is divided."),
  };
  return settings;
}

std::vector<TableDeclaration> network_tables() {
  return {
      {.path = "network",
       .help = "An event-building network: its nodes, what they send to each other, and the switches between them.",
       .optional = true},
      scenario_table(
          "topology",
          "Readouts, racks, filter nodes and the speed of their links. A key that is left out has the value of the preset."),
      scenario_table("traffic", "Events: how large, how many, when, and to which node."),
      scenario_table("switch", "Memory of a rack's switch. A key that is left out has the value of the preset `switch`."),
      scenario_table("simulation", "How the network is simulated."),
      scenario_table("tcp", "Both ends of the connections; the defaults are those of Linux."),
      {.path = "network.size",
       .help = "The question of `rodeo net size`: the buffer without drops, and its certainty.",
       .keys = kSize.keys()},
      {.path = "network.sweep",
       .help = "What `rodeo net sweep` runs: every combination of the axes, with repeats, as single runs or as searches.",
       .keys = sweep_settings().keys(),
       .optional = true},
      {.path = "network.sweep.axis",
       .help = "One setting of the network that a sweep varies: a list of values, or a range.",
       .keys = axis_settings().keys(),
       .form = TableDeclaration::Form::array},
      {.path = "network.executor", .help = "Where runs are executed.", .keys = kExecutor.keys()},
  };
}

}  // namespace rodeo::network
