#include "cli/system.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/configuration.h"
#include "emulator/settings.h"
#include "farm/configuration.h"
#include "formats/link_names.h"
#include "network/job.h"
#include "network/tables.h"
#include "process/configuration.h"
#include "process/control_configuration.h"
#include "readout/configuration.h"
#include "readout/library.h"
#include "router/configuration.h"
#include "settings/link_tables.h"
#include "settings/toml_file.h"

namespace rodeo::cli {

using settings::ComponentKind;
using settings::load_configuration;
using settings::read_toml_file;

using Form = TableDeclaration::Form;

std::vector<TableDeclaration> system_tables() {
  std::vector<TableDeclaration> tables{
      {.path = "run",
       .help = "Values for the run in the headers of events and files.",
       .keys = readout::run_settings().keys()},
      {.path = "readout",
       .help = "One software ROD process: an input, a builder for each ROB, and the consumers that fragments pass through.",
       .keys = readout::process_settings().keys()},
      {.path = "readout.input", .help = "Where chunks come from.", .component = ComponentKind::input},
      {.path = "readout.builder",
       .help = "The builder of fragments from chunks. Each ROB has one builder of this type.",
       .component = ComponentKind::builder,
       .default_type = "gbt"},
      {.path = "readout.extractor",
       .help = "Reads trigger information from chunks. Each worker has one extractor.",
       .component = ComponentKind::extractor,
       .default_type = "rodeo"},
      {.path = "readout.checker",
       .help = "Checks the integrity of chunks. Without this table, chunks are not checked.",
       .optional = true,
       .component = ComponentKind::checker},
      {.path = "readout.metrics",
       .help = "Metrics of the readout in Prometheus' text format, over HTTP at /metrics.",
       .keys = process::metrics_keys()},
      {.path = "readout.link_policy",
       .help = "When Rodeo removes links from the build and restores them automatically.",
       .keys = readout::link_policy_settings().keys()},
      {.path = "readout.rob",
       .help = "One ROB: the links whose chunks become the fragments of one source id.",
       .keys = readout::rob_settings().keys(),
       .form = Form::array},
      {.path = "readout.consumer",
       .help = "The stages after the builder. Consumers form a list in the order of the file: each passes fragments on to "
               "the next.",
       .keys = {{.name = "name",
                 .type = KeyType::text,
                 .fallback = "{type}",
                 .help = "Name in reports and messages, unique. Without it: the type, and from the second on with a number: "
                         "processor_2."}},
       .form = Form::array,
       .component = ComponentKind::consumer,
       .joined = {{"work", ComponentKind::work}}},
      {.path = "emulator",
       .help = "Emulated cards: a process with PCI functions, for `rodeo emulate`.",
       .keys = emulator::process_settings().keys(),
       .optional = true},
      {.path = "emulator.trigger",
       .help = "The trigger authority: it assigns L1 ids to the offered triggers that busy and dead time let pass, and "
               "sends them "
               "to all cards of the process and of its followers.",
       .keys = emulator::trigger_settings().keys()},
      {.path = "emulator.card", .help = "One emulated card.", .keys = emulator::card_settings().keys(), .form = Form::array},
      {.path = "emulator.fault",
       .help = "A scheduled fault.",
       .keys = emulator::fault_settings().keys(),
       .form = Form::array},
  };
  tables.push_back(settings::link_table());
  for (auto& more : {router::router_tables(), farm::farm_tables(), network::network_tables(), process::control_tables()})
    tables.insert(tables.end(), more.begin(), more.end());
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

namespace {

std::expected<void, ConfigurationErrors> keep_link_names(const settings::Configuration& configuration) {
  formats::set_link_names(RODEO_TRY(settings::link_names(configuration)));
  return {};
}

}  // namespace

std::expected<readout::ReadoutConfiguration, ConfigurationErrors> load_readout(const ConfigurationSource& source) {
  auto library = std::make_unique<readout::Library>();
  const auto configuration = RODEO_TRY(load_configuration(source, system_tables(), library->registry(), library->plugins()));
  RODEO_TRY(keep_link_names(configuration));
  return readout::configure_readout(configuration, std::move(library));
}

std::expected<emulator::EmulatorSettings, ConfigurationErrors> load_emulator(const ConfigurationSource& source) {
  readout::Library library;
  const auto tables = tables_for(source.file);
  const auto configuration = load_configuration(source, tables, library.registry(), library.plugins());
  if (!configuration) {
    // Without any emulator table, other errors are irrelevant.
    const auto raw = read_toml_file(source.file);
    const bool told = std::ranges::any_of(source.overrides, [](const auto& one) { return one.starts_with("emulator"); });
    if (raw && raw->find("emulator") == nullptr && !told) return std::unexpected(emulator::no_emulator(source.file));
    return std::unexpected(configuration.error());
  }
  return emulator::emulator_of(*configuration);
}

std::expected<LoadedRouter, ConfigurationErrors> load_router(const ConfigurationSource& source) {
  const std::unexpected nothing(ConfigurationErrors{{"config.missing_key", "the file has no [router]", source.file.string(),
                                                     "begin with [router.input]: rodeo explain router"}});
  const auto raw = read_toml_file(source.file);
  const bool told = std::ranges::any_of(source.overrides, [](const auto& one) { return one.starts_with("router"); });
  if (raw && raw->find("router") == nullptr && !told) return nothing;
  auto library = std::make_unique<readout::Library>();
  const auto configuration =
      RODEO_TRY(load_configuration(source, tables_for(source.file), library->registry(), library->plugins()));
  if (configuration.table("router") == nullptr) return nothing;
  RODEO_TRY(keep_link_names(configuration));
  auto router = RODEO_TRY(router::configure_router(configuration));
  return LoadedRouter{std::move(library), std::move(router)};
}

namespace {

/// The configuration of a process of the farm, which has the table [farm.NAME].
std::expected<settings::Configuration, ConfigurationErrors> load_farm(const ConfigurationSource& source,
                                                                      readout::Library& library, const std::string& name) {
  const std::string path = "farm." + name;
  const std::unexpected nothing(ConfigurationErrors{{"config.missing_key", fmt::format("the file has no [{}]", path),
                                                     source.file.string(), "begin with it: rodeo explain " + path}});
  const auto raw = read_toml_file(source.file);
  const bool told = std::ranges::any_of(source.overrides, [&](const auto& one) { return one.starts_with(path); });
  const auto* const farm = raw ? raw->find("farm") : nullptr;
  if (raw && (farm == nullptr || farm->find(name) == nullptr) && !told) return nothing;
  auto configuration = load_configuration(source, tables_for(source.file), library.registry(), library.plugins());
  if (configuration && configuration->table(path) == nullptr) return nothing;
  return configuration;
}

}  // namespace

std::expected<LoadedNode, ConfigurationErrors> load_node(const ConfigurationSource& source) {
  auto library = std::make_unique<readout::Library>();
  const auto configuration = RODEO_TRY(load_farm(source, *library, "node"));
  auto node = RODEO_TRY(farm::configure_node(configuration));
  return LoadedNode{std::move(library), std::move(node)};
}

std::expected<farm::SupervisorConfiguration, ConfigurationErrors> load_supervisor(const ConfigurationSource& source) {
  readout::Library library;
  const auto configuration = RODEO_TRY(load_farm(source, library, "supervisor"));
  return farm::configure_supervisor(configuration);
}

std::expected<farm::RecorderConfiguration, ConfigurationErrors> load_recorder(const ConfigurationSource& source) {
  readout::Library library;
  const auto configuration = RODEO_TRY(load_farm(source, library, "recorder"));
  return farm::configure_recorder(configuration);
}

std::expected<Json, ConfigurationErrors> load_network(const ConfigurationSource& source) {
  const auto nothing = [&](std::string next) {
    return std::unexpected(
        ConfigurationErrors{{"config.missing_key", "the file has no [network]", source.file.string(), std::move(next)}});
  };
  const char* const begin = "begin with [network.topology] and [network.traffic]: rodeo explain network";
  const auto raw = read_toml_file(source.file);
  const bool by_flag =
      std::ranges::any_of(source.overrides, [](const std::string& one) { return one.starts_with("network."); });
  if (raw && raw->find("network") == nullptr && !by_flag) {
    // Check this before other errors: the file does not describe a network.
    for (const TableDeclaration& table : network::network_tables()) {
      const std::string name = table.path.substr(std::min(table.path.find('.') + 1, table.path.size()));
      if (raw->find(name) != nullptr) return nothing(fmt::format("its [{}] is [{}] here", name, table.path));
    }
    return nothing(begin);
  }
  readout::Library library;
  const auto configuration =
      RODEO_TRY(load_configuration(source, tables_for(source.file), library.registry(), library.plugins()));
  if (configuration.table("network") == nullptr) return nothing(begin);
  return network::network_job(configuration);
}

}  // namespace rodeo::cli
