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

Key whole(std::string name, std::string fallback, std::string help, double minimum, double maximum = 1e15) {
  return {.name = std::move(name),
          .type = KeyType::integer,
          .fallback = std::move(fallback),
          .help = std::move(help),
          .minimum = minimum,
          .maximum = maximum};
}

Key fraction(std::string name, std::string fallback, std::string help, double minimum, double maximum) {
  return {.name = std::move(name),
          .type = KeyType::real,
          .fallback = std::move(fallback),
          .help = std::move(help),
          .minimum = minimum,
          .maximum = maximum};
}

Key words(std::string name, std::string fallback, std::string help) {
  return {.name = std::move(name), .type = KeyType::text, .fallback = std::move(fallback), .help = std::move(help)};
}

Key one_of(std::string name, std::string fallback, std::string help, std::vector<std::string> choices) {
  return {.name = std::move(name),
          .type = KeyType::choice,
          .fallback = std::move(fallback),
          .help = std::move(help),
          .choices = std::move(choices)};
}

TableDeclaration size_table() {
  return {.path = "network.size",
          .help = "What `rodeo net size` answers: the buffer without drops, and how sure.",
          .keys = {fraction("confidence", "0.99", "That a run of `duration` has no drops, before the margin.", 0.5, 0.99999),
                   fraction("margin", "0.03", "Added to the buffer, relative.", 0, 10),
                   whole("seeds", "40", "Runs that the distribution of the largest occupancy is fitted to.", 10, 10000),
                   whole("proof_seeds", "20",
                         "Runs that prove the answer: none may drop with it, one must with nine tenths of it.", 1, 1000),
                   one_of("proof_engine", "packet", "Engine of the proof.", {"packet", "train"}),
                   {.name = "assumptions",
                    .type = KeyType::boolean,
                    .fallback = "true",
                    .help = "Varies one assumption after the other, to see which dominates."}}};
}

TableDeclaration sweep_table() {
  return {.path = "network.sweep",
          .help = "What `rodeo net sweep` runs: every combination of the axes, with repeats, as single runs or as searches.",
          .keys = {one_of("method", "simulation", "What a run is.", {"formula", "simulation", "laboratory"}),
                   whole("repeats", "1", "Runs or searches of each point, with seeds that follow `seed`.", 1, 100000),
                   whole("seed", "1", "Seed of the first repeat.", 0),
                   one_of("search", "none", "Bisection: the highest rate, or the smallest buffer, without drops.",
                          {"none", "rate", "buffer"}),
                   words("low", "", "Where a search begins: a rate or a size, as `search` is one or the other."),
                   words("high", "", "Where a search ends; not exceeded."),
                   fraction("tolerance", "0.01", "Relative width at which a search stops.", 1e-6, 0.5),
                   fraction("drops_allowed", "0",
                            "Share of packets that may be dropped in a run that counts as one without drops.", 0, 1)},
          .optional = true};
}

TableDeclaration axis_table() {
  return {.path = "network.sweep.axis",
          .help = "One setting of the network that a sweep varies: a list of values, or a range.",
          .keys = {{.name = "key",
                    .type = KeyType::text,
                    .help = "Name of the setting, such as event_size or rate.",
                    .required = true},
                   {.name = "values",
                    .type = KeyType::text_list,
                    .fallback = "[]",
                    .help = "Values as texts, such as [\"1MB\", \"5MB\"]."},
                   words("from", "", "First value of a range."),
                   words("to", "", "Last value of a range."),
                   whole("steps", "0", "How many values a range has, ends included.", 0, 100000),
                   one_of("scale", "linear", "How a range is divided.", {"linear", "log"})},
          .form = TableDeclaration::Form::array};
}

TableDeclaration executor_table() {
  return {
      .path = "network.executor",
      .help = "Where runs are done.",
      .keys = {one_of("kind", "local",
                      "Processes of this machine, a Dask scheduler, Dask on this machine, or jobs of a batch system.",
                      {"local", "dask", "dask-local", "slurm", "htcondor"}),
               whole("workers", "0", "Processes, or jobs of a batch system; 0: one for each CPU, or one job.", 0, 100000),
               words("scheduler", "", "Address of a running Dask scheduler, such as tcp://host:8786."),
               words("queue", "", "Partition of the batch system; empty: its default."),
               whole("cores", "1", "CPUs of a job.", 1, 4096),
               words("memory", "2GB", "Memory of a job."),
               words("walltime", "01:00:00", "Time limit of a job, as Slurm writes it."),
               words("interface", "", "Network interface that scheduler and workers meet on; empty: Dask chooses."),
               {.name = "directives",
                .type = KeyType::text_list,
                .fallback = "[]",
                .help = "Further lines for the job's description."},
               {.name = "prologue",
                .type = KeyType::text_list,
                .fallback = "[]",
                .help = "Shell lines of a job before its worker starts."}}};
}

}  // namespace

std::vector<TableDeclaration> network_tables() {
  return {
      {.path = "network",
       .help = "An event-building network: who sends what to whom through which switch.",
       .optional = true},
      scenario_table("topology",
                     "Readouts, racks, filter nodes and the speed of their links. Left out, a key is as in the preset."),
      scenario_table("traffic", "Events: how large, how many, when, and to which node."),
      scenario_table("switch", "Memory of a rack's switch. Left out, a key is as in the preset `switch`."),
      scenario_table("simulation", "How the network is simulated."),
      scenario_table("tcp", "Both ends of the connections; the defaults are those of Linux."),
      size_table(),
      sweep_table(),
      axis_table(),
      executor_table(),
  };
}

}  // namespace rodeo::network
