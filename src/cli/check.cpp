// `rodeo check`: validates configurations before a run; prints every value with its origin, or the JSON Schema.
#include <fmt/format.h>

#include <algorithm>

#include "base/sentence.h"
#include "cli/system.h"
#include "cli/verbs.h"
#include "emulator/configuration.h"
#include "network/job.h"
#include "process/control_configuration.h"
#include "readout/configuration.h"
#include "readout/library.h"
#include "router/configuration.h"
#include "settings/configuration.h"
#include "settings/effective.h"
#include "settings/link_tables.h"
#include "settings/reference.h"
#include "settings/schema.h"

namespace rodeo::cli {

namespace {

using settings::Configuration;
using settings::ConfigurationErrors;

struct CheckOptions {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  std::vector<std::string> plugins;
  bool effective = false;
  bool schema = false;
  bool reference = false;
  bool alone = false;
  OutputFormat format = OutputFormat::table;
};

Json error_json(const Error& error) {
  return Json::object({{"code", error.code}, {"what", error.what}, {"where", error.where}, {"next", error.next}});
}

/// A table of every value and its origin.
Table effective_values(const Configuration& configuration) {
  Table table({{"key", "key"}, {"value", "value"}, {"origin", "origin"}, {"from", "where"}});
  configuration.root.visit([&](const settings::Table& one) {
    for (const settings::ConfiguredValue& setting : one.settings()) {
      const bool given = setting.origin != settings::Origin::fallback;
      table.add_row({one.path() + "." + setting.key.name, setting.written,
                     Cell(settings::origin_name(setting.origin), {}, given ? Style::strong : Style::faint),
                     setting.where.empty() ? Cell(Json()) : Cell(setting.where)});
    }
  });
  return table;
}

std::size_t values_given(const Configuration& configuration) {
  std::size_t given = 0;
  configuration.root.visit([&](const settings::Table& one) {
    for (const settings::ConfiguredValue& setting : one.settings()) given += setting.origin != settings::Origin::fallback;
  });
  return given;
}

bool has_readout(const std::vector<settings::TableDeclaration>& tables) {
  return std::ranges::any_of(tables, [](const settings::TableDeclaration& table) { return table.path == "readout"; });
}

/// Reads a configuration and checks all its tables. `library` gets its plug-ins, and must live longer than the result.
std::expected<Configuration, ConfigurationErrors> checked(const std::string& file, const std::vector<std::string>& overrides,
                                                          const std::vector<std::string>& plugins,
                                                          readout::Library& library) {
  for (const std::string& plugin : plugins) {
    if (const auto loaded = library.plugins().load(plugin); !loaded) throw SetupError(loaded.error());
  }
  const auto tables = tables_for(file);
  auto configuration =
      settings::load_configuration({.file = file, .overrides = overrides}, tables, library.registry(), library.plugins());
  if (!configuration) return configuration;
  ConfigurationErrors errors =
      has_readout(tables) ? readout::check_readout(*configuration, library.registry()) : ConfigurationErrors{};
  const auto add = [&](const auto& made) {
    if (!made) errors.insert(errors.end(), made.error().begin(), made.error().end());
  };
  if (configuration->table("emulator") != nullptr) add(emulator::emulator_of(*configuration));
  if (configuration->table("router") != nullptr) add(router::configure_router(*configuration));
  if (configuration->table("farm.node") != nullptr) add(farm::configure_node(*configuration));
  if (configuration->table("farm.supervisor") != nullptr) add(farm::configure_supervisor(*configuration));
  if (configuration->table("farm.recorder") != nullptr) add(farm::configure_recorder(*configuration));
  add(network::network_job(*configuration));
  add(settings::link_names(*configuration));
  const ConfigurationErrors of_system = process::check_control(*configuration);
  errors.insert(errors.end(), of_system.begin(), of_system.end());
  if (!errors.empty()) return std::unexpected(std::move(errors));
  return configuration;
}

/// Notes on the silences of links after which a readout still places their ids rightly; empty without a readout.
std::vector<readout::SilenceNote> silence_notes(const std::string& file, const Configuration& configuration,
                                                readout::Library& library) {
  if (!has_readout(tables_for(file))) return {};
  return readout::silence_notes(configuration, library.registry());
}

void report_errors(const ConfigurationErrors& errors, const CheckOptions& options, Json& entry) {
  for (const Error& error : errors) {
    entry["errors"].push_back(error_json(error));
    if (options.format != OutputFormat::json) print_error(error);
  }
}

/// Checks the configurations that a system file names, as its processes use them. Errors name the process. False: one is
/// invalid.
bool check_classes(const Configuration& system, const CheckOptions& options, Json& report) {
  bool valid = true;
  for (const process::ClassConfiguration& one : process::class_configurations(system)) {
    readout::Library library;
    auto found = checked(one.file.string(), one.overrides, {}, library);
    if (found) continue;
    valid = false;
    for (Error& error : found.error()) error.what = fmt::format("process {}: {}", one.process, error.what);
    Json entry = Json::object({{"file", one.file.string()}, {"valid", false}, {"errors", Json::array()}});
    report_errors(found.error(), options, entry);
    report.push_back(std::move(entry));
  }
  return valid;
}

/// Checks one file, and the files that it names. Returns the result for programs; nothing if it was already printed for
/// people.
bool check_file(const std::string& file, const CheckOptions& options, Json& report) {
  // Each file has its own library: the plug-ins of one file must not make another valid.
  readout::Library library;
  const auto configuration = checked(file, options.overrides, options.plugins, library);
  Json entry = Json::object({{"file", file}, {"valid", configuration.has_value()}, {"errors", Json::array()}});
  if (!configuration) {
    report_errors(configuration.error(), options, entry);
    report.push_back(std::move(entry));
    return false;
  }
  entry["configuration_sha256"] = settings::configuration_sha256(*configuration);
  const auto notes = silence_notes(file, *configuration, library);
  entry["notes"] = Json::array();
  for (const readout::SilenceNote& note : notes) entry["notes"].push_back(Json(note.text));
  Json of_classes = Json::array();
  const bool valid = options.alone || check_classes(*configuration, options, of_classes);
  if (options.effective) {
    const Table values = effective_values(*configuration);
    entry["values"] = values.json();
    if (options.format != OutputFormat::json) values.print(options.format);
  } else if (options.format == OutputFormat::table && valid) {
    print_folded(fmt::format("{}: valid, {} given\n", file, base::counted(values_given(*configuration), "value")));
    for (const readout::SilenceNote& note : notes) print_folded(fmt::format("  {}\n", note.text));
  } else if (options.format == OutputFormat::csv && valid) {
    print(fmt::format("{},valid\n", file));
  }
  report.push_back(std::move(entry));
  for (const Json& one : of_classes.elements()) report.push_back(one);
  return valid;
}

Result<ExitCode> check(const CheckOptions& options) {
  if (options.schema || options.reference) {
    readout::Library library;
    const auto tables = system_tables();
    for (const std::string& plugin : options.plugins) RODEO_TRY(library.plugins().load(plugin));
    for (const std::string& file : options.files) {
      const auto read =
          settings::load_configuration({.file = file}, tables_for(file), library.registry(), library.plugins());
      if (!read) return std::unexpected(read.error().front());
    }
    print(options.schema ? settings::json_schema(tables, library.registry()).dump() + "\n"
                         : settings::configuration_reference(tables, library.registry()));
    return ExitCode::done;
  }
  if (options.files.empty()) {
    return usage_error("rodeo check: which FILE?", "rodeo check --help");
  }
  Json report = Json::array();
  bool valid = true;
  for (const std::string& file : options.files) valid = check_file(file, options, report) && valid;
  if (options.format == OutputFormat::json) print(report.dump() + "\n");
  return valid ? ExitCode::done : ExitCode::invalid_configuration;
}

}  // namespace

void add_check(Command& root) {
  auto options = std::make_shared<CheckOptions>();
  Command& verb = root.verb("check", "Validates configurations: errors with file:line:column and \"did you mean\"");
  verb.example("rodeo check run.toml", "all errors of the file; exit status 3 if there is one")
      .example("rodeo check --effective run.toml", "every value and its origin")
      .example("rodeo check --schema > rodeo.schema.json", "a JSON Schema for editors that complete and check TOML");
  verb.option("FILE", options->files, "Configurations (TOML)");
  verb.flag("--effective", options->effective, "Print every value with its origin: default, file, environment, flag");
  verb.flag("--schema", options->schema, "Print the JSON Schema (draft 7), with the plug-ins of the files and of --plugin");
  verb.flag("--reference", options->reference, "Print the reference of every key as Markdown");
  verb.flag("--alone", options->alone, "For a system file: do not check the configurations of its classes");
  verb.option("--set", options->overrides, "Set a key as `rodeo readout --set` does").value_name("KEY=VALUE");
  verb.option("--plugin", options->plugins, "Load a plug-in that the files do not name").value_name("LIB");
  verb.output(options->format);
  verb.run([options] { return check(*options); });
}

}  // namespace rodeo::cli
