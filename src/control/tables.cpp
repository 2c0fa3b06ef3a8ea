#include "control/tables.h"

#include <algorithm>

#include "control/network_tables.h"
#include "emulator/settings.h"
#include "readout/setting_tables.h"
#include "settings/toml_file.h"

namespace rodeo::control {

using settings::ComponentKind;
using settings::read_toml_file;

namespace {

using Form = TableDeclaration::Form;

}  // namespace

std::vector<TableDeclaration> system_tables() {
  std::vector<TableDeclaration> tables{
      {.path = "run",
       .help = "What the headers of events and files say of the run.",
       .keys = readout::run_settings().keys()},
      {.path = "readout",
       .help = "One software ROD process: an input, a builder for each ROB, and the consumers that fragments pass through.",
       .keys = {{.name = "name",
                 .type = KeyType::text,
                 .fallback = "readout",
                 .help = "Name of the process: names its control socket, and stands in its files."},
                {.name = "plugins",
                 .type = KeyType::text_list,
                 .fallback = "[]",
                 .help = "Plug-in libraries to load, by name (libNAME.so in the search path) or by path (with a /, relative "
                         "to this file)."},
                {.name = "plugin_directories",
                 .type = KeyType::text_list,
                 .fallback = "[]",
                 .help = "Directories to look for plug-ins in, relative to this file; searched after RODEO_PLUGIN_PATH."},
                {.name = "control",
                 .type = KeyType::boolean,
                 .fallback = "true",
                 .help =
                     "Listens on a control socket in the runtime directory, for `rodeo readout status`, `link` and `stop`."},
                {.name = "fail_on_loss",
                 .type = KeyType::real,
                 .fallback = "1",
                 .help = "Exit status 6 if a larger fraction of chunks is lost, of fragments incomplete, or of events not "
                         "written; 0: "
                         "if anything is lost, 1: never.",
                 .minimum = 0,
                 .maximum = 1}}},
      {.path = "readout.input", .help = "Where chunks come from.", .component = ComponentKind::input},
      {.path = "readout.builder",
       .help = "How chunks become fragments. One builder of this type is made for each ROB.",
       .component = ComponentKind::builder,
       .default_type = "gbt"},
      {.path = "readout.extractor",
       .help = "What reads trigger information out of a chunk. Made once for each worker.",
       .component = ComponentKind::extractor,
       .default_type = "rodeo"},
      {.path = "readout.checker",
       .help = "What checks the integrity of a chunk. Left out, chunks are not checked.",
       .optional = true,
       .component = ComponentKind::checker},
      {.path = "readout.metrics",
       .help = "Metrics of the readout in Prometheus' text format, over HTTP at /metrics.",
       .keys = {{.name = "listen",
                 .type = KeyType::text,
                 .fallback = "",
                 .help = "ADDRESS:PORT to listen at, for example 127.0.0.1:9464. Empty: no metrics over HTTP."}}},
      {.path = "readout.link_policy",
       .help = "When links leave the build and come back without anybody asking.",
       .keys = readout::link_policy_settings().keys()},
      {.path = "readout.rob",
       .help = "One ROB: the links whose chunks become the fragments of one source id.",
       .keys = readout::rob_settings().keys(),
       .form = Form::array},
      {.path = "readout.consumer",
       .help = "What happens to built fragments. Consumers form a list in the order of the file: each passes fragments on "
               "to the next.",
       .keys = {{.name = "name",
                 .type = KeyType::text,
                 .fallback = "{type}",
                 .help =
                     "Name in reports and messages, each of its own. Left out: the type, from the second on with a number: "
                     "processor_2."}},
       .form = Form::array,
       .component = ComponentKind::consumer,
       .joined = {{"work", ComponentKind::work}}},
      {.path = "emulator",
       .help = "Emulated cards: PCI functions as a process, for `rodeo emulate`.",
       .keys = emulator::process_settings().keys(),
       .optional = true},
      {.path = "emulator.trigger",
       .help = "The trigger authority: it assigns L1 ids to offered triggers that busy and dead time let pass, and all "
               "cards of the process, and of those that follow it, get them.",
       .keys = emulator::trigger_settings().keys()},
      {.path = "emulator.card", .help = "One emulated card.", .keys = emulator::card_settings().keys(), .form = Form::array},
      {.path = "emulator.fault",
       .help = "A fault by schedule.",
       .keys = emulator::fault_settings().keys(),
       .form = Form::array},
  };
  auto network = network_tables();
  for (TableDeclaration& table : network) tables.push_back(std::move(table));
  return tables;
}

std::vector<TableDeclaration> tables_for(const std::filesystem::path& file) {
  std::vector<TableDeclaration> tables = system_tables();
  const auto raw = read_toml_file(file);
  if (!raw || raw->find("readout") != nullptr) return tables;
  const bool something_else = std::ranges::any_of(tables, [&](const TableDeclaration& table) {
    return table.optional && table.path.find('.') == std::string::npos && raw->find(table.path) != nullptr;
  });
  if (something_else) std::erase_if(tables, [](const TableDeclaration& table) { return table.path.starts_with("readout"); });
  return tables;
}

}  // namespace rodeo::control
