// `rodeo plugin`: the components and their origins.
#include "cli/verbs.h"
#include "readout/library.h"

namespace rodeo::cli {

namespace {

struct ListOptions {
  std::vector<std::string> plugins;
  std::string kind;
  OutputFormat format = OutputFormat::table;
};

Result<ExitCode> list(const ListOptions& options) {
  readout::Library library;
  for (const std::string& plugin : options.plugins) RODEO_TRY(library.plugins().load(plugin));
  Table table({{"kind", "kind"}, {"name", "name"}, {"origin", "origin"}, {"", "help"}});
  for (const base::ComponentKind kind : base::kComponentKinds) {
    if (!options.kind.empty() && options.kind != base::kind_name(kind)) continue;
    for (const auto& component : library.registry().components()) {
      if (component->kind != kind) continue;
      table.add_row({base::kind_name(kind), component->info.name, component->origin, component->info.help});
    }
  }
  table.print(options.format);
  return ExitCode::done;
}

void add_list(Command& plugin) {
  auto options = std::make_shared<ListOptions>();
  Command& verb = plugin.verb("list", "Lists components with kind, name and origin");
  verb.example("rodeo plugin list", "components of the default library")
      .example("rodeo plugin list my_detector", "also those of a plug-in");
  verb.option("LIB", options->plugins, "Plug-ins to load, by name or path");
  std::vector<std::string> kinds;
  for (const base::ComponentKind kind : base::kComponentKinds) kinds.emplace_back(base::kind_name(kind));
  verb.choice("--kind", options->kind, kinds, "Only components of this kind");
  verb.output(options->format);
  verb.run([options] { return list(*options); });
}

}  // namespace

void add_plugin(Command& root) {
  Command& plugin = root.verb("plugin", "Writes, lists and tests detector plug-ins");
  add_plugin_new(plugin);
  add_plugin_test(plugin);
  add_list(plugin);
}

}  // namespace rodeo::cli
