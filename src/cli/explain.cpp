// `rodeo explain`: long help on a configuration key, a table, an error code, or a word of the reports.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "base/nearest.h"
#include "cli/system.h"
#include "cli/verbs.h"
#include "cli/vocabulary.h"
#include "cli/wrapped.h"
#include "readout/library.h"
#include "settings/key_list.h"
#include "settings/key_value.h"

namespace rodeo::cli {

namespace {

using settings::ListedKey;
using settings::TableDeclaration;

struct ExplainOptions {
  std::string name;
  std::vector<std::string> plugins;
  OutputFormat format = OutputFormat::table;
};

/// Long help, as a paragraph below a heading.
std::string help_text(std::string_view text) { return wrapped(text, columns_on_stdout(), 2, 2); }

/// readout.rob[0].links and readout.rob.0.links name the key readout.rob.links.
std::string without_positions(std::string_view name) {
  std::string plain;
  while (!name.empty()) {
    const std::string_view step = name.substr(0, name.find('.'));
    name.remove_prefix(std::min(step.size() + 1, name.size()));
    const std::string_view word = step.substr(0, step.find('['));
    if (std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; })) continue;
    plain += (plain.empty() ? "" : ".") + std::string(word);
  }
  return plain;
}

std::string environment_name(const std::string& path) {
  std::string name = "RODEO_";
  for (const char c : path) name += c == '.' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return name;
}

std::string choices_text(const Key& key) {
  std::string list;
  for (const std::string& choice : key.choices) list += (list.empty() ? "" : ", ") + choice;
  return list;
}

Json key_json(const ListedKey& listed) {
  const Key& key = listed.key;
  Json json = Json::object({{"key", listed.path()},
                            {"type", settings::type_name(key.type)},
                            {"required", key.required},
                            {"default", key.required ? Json() : Json(settings::default_text(key))},
                            {"allowed", key.choices.empty() ? Json(settings::range_text(key)) : Json::array_of(key.choices)},
                            {"help", key.help}});
  if (listed.component != nullptr) json["component"] = Json::object({{listed.slot, listed.component->info.name}});
  return json;
}

std::string key_text(const ListedKey& listed, bool colours) {
  const Key& key = listed.key;
  std::string text = styled(listed.path(), Style::strong, colours);
  if (listed.component != nullptr) text += fmt::format("    with {} = \"{}\"", listed.slot, listed.component->info.name);
  text += "\n  " + settings::summary(key);
  if (const std::string range = settings::range_text(key); !range.empty()) text += ", " + range;
  if (!key.choices.empty()) text += ", one of: " + choices_text(key);
  text += "\n\n  " + help_text(key.help) + "\n\n";
  const bool array = listed.table->form == TableDeclaration::Form::array;
  const std::string path = array ? listed.table->path + "[0]." + key.name : listed.path();
  text += fmt::format("  file         {}\n", array ? "[[" + listed.table->path + "]]" : "[" + listed.table->path + "]");
  text += fmt::format("               {} = {}\n", key.name, key.required ? "..." : settings::default_text(key));
  text +=
      fmt::format("  environment  {}\n", environment_name(array ? listed.table->path + ".0." + key.name : listed.path()));
  text += fmt::format("  flag         --set {}=...\n", path);
  if (listed.component != nullptr && listed.component->origin != "built in")
    text += "  from         " + listed.component->origin + "\n";
  return text;
}

void print_keys(const std::vector<const ListedKey*>& keys, OutputFormat format) {
  if (format == OutputFormat::table) {
    bool first = true;
    for (const ListedKey* listed : keys) {
      print((first ? "" : "\n") + key_text(*listed, colours_on_stdout()));
      first = false;
    }
    return;
  }
  Json list = Json::array();
  for (const ListedKey* listed : keys) list.push_back(key_json(*listed));
  print(list.dump() + "\n");
}

std::string heading(const TableDeclaration& declaration) {
  return declaration.form == TableDeclaration::Form::array ? "[[" + declaration.path + "]]" : "[" + declaration.path + "]";
}

std::string first_sentence(const std::string& help) { return help.substr(0, help.find(". ")); }

bool directly_below(const std::string& path, const TableDeclaration& table) {
  return table.path.starts_with(path + ".") && table.path.find('.', path.size() + 1) == std::string::npos;
}

/// The tables directly below one, one line each with the first sentence of their help.
std::string tables_below(const std::string& path, const std::vector<TableDeclaration>& tables) {
  std::string lines;
  for (const TableDeclaration& table : tables) {
    if (!directly_below(path, table)) continue;
    lines += fmt::format("  {:<28}  {}\n", heading(table), wrapped(first_sentence(table.help), columns_on_stdout(), 32, 32));
  }
  return lines;
}

/// One row for each key of a table.
Table rows_of_keys(const TableDeclaration& declaration, const std::vector<ListedKey>& keys) {
  Table table({{"key", "key"}, {"of", "component"}, {"type", "type"}, {"default", "default"}, {"", "help"}});
  for (const ListedKey& listed : keys) {
    if (listed.table != &declaration) continue;
    table.add_row({listed.key.name, listed.component == nullptr ? Json("") : Json(listed.component->info.name),
                   settings::type_name(listed.key.type),
                   listed.key.required ? Json("required") : Json(settings::default_text(listed.key)),
                   first_sentence(listed.key.help)});
  }
  return table;
}

/// The same for a program, and one row for each table directly below it.
Table rows_of_table(const TableDeclaration& declaration, const std::vector<TableDeclaration>& tables,
                    const std::vector<ListedKey>& keys) {
  Table rows = rows_of_keys(declaration, keys);
  for (const TableDeclaration& table : tables) {
    if (!directly_below(declaration.path, table)) continue;
    const bool array = table.form == TableDeclaration::Form::array;
    rows.add_row({table.path.substr(declaration.path.size() + 1), Json(""), array ? Json("tables") : Json("table"), Json(),
                  first_sentence(table.help)});
  }
  return rows;
}

/// A table: its help, one line for each of its keys, and the tables below it.
void print_table(const TableDeclaration& declaration, const std::vector<TableDeclaration>& tables,
                 const std::vector<ListedKey>& keys, OutputFormat format) {
  if (format != OutputFormat::table) return rows_of_table(declaration, tables, keys).print(format);
  const Table table = rows_of_keys(declaration, keys);
  print(fmt::format("{}\n  {}\n\n", heading(declaration), help_text(declaration.help)));
  if (table.rows() > 0) table.print(format);
  if (const std::string below = tables_below(declaration.path, tables); !below.empty())
    print(fmt::format("{}tables below it (rodeo explain {}.NAME):\n{}", table.rows() > 0 ? "\n" : "", declaration.path,
                      below));
}

/// `table`: for a program, the rows of the table of this name.
void print_code(const ErrorCode& code, OutputFormat format, std::optional<Json> table = {}) {
  const int status = static_cast<int>(code.exit);
  if (format == OutputFormat::table) {
    return print(fmt::format("{}    exit status {}\n\n  {}\n", styled(code.code, Style::strong, colours_on_stdout()), status,
                             help_text(code.text)));
  }
  Json json = Json::object({{"code", code.code}, {"exit_status", status}, {"text", code.text}});
  if (table) json["table"] = std::move(*table);
  print(json.dump() + "\n");
}

void print_words(const std::vector<Word>& words, OutputFormat format) {
  Json list = Json::array();
  for (const Word& word : words) {
    if (format == OutputFormat::table) {
      print(fmt::format("{}    {}{}\n\n  {}\n", styled(word.word, Style::strong, colours_on_stdout()), word.kind,
                        word.unit.empty() ? "" : fmt::format(" [{}]", word.unit), help_text(word.text)));
      for (const auto& [head, text] : {std::pair("usually", word.cause), std::pair("what to do", word.next)}) {
        if (!text.empty())
          print(fmt::format("\n  {}\n  {}\n", styled(head, Style::strong, colours_on_stdout()), help_text(text)));
      }
    }
    list.push_back(Json::object({{"word", word.word},
                                 {"kind", word.kind},
                                 {"unit", word.unit},
                                 {"text", word.text},
                                 {"cause", word.cause},
                                 {"next", word.next}}));
  }
  if (format != OutputFormat::table) print(list.dump() + "\n");
}

bool same_word(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
}

Result<ExitCode> explain(const ExplainOptions& options) {
  const auto tables = system_tables();
  // Some tables have the same name as an error about them: people get both, a program gets the error with the table in it.
  const ErrorCode* const code = find_error_code(options.name);
  const bool table_too = std::ranges::any_of(tables, [&](const auto& table) { return table.path == options.name; });
  if (code != nullptr && !table_too) {
    print_code(*code, options.format);
    return ExitCode::done;
  }
  readout::Library library;
  for (const std::string& plugin : options.plugins) RODEO_TRY(library.plugins().load(plugin));
  const auto keys = settings::list_keys(tables, library.registry());
  const std::string name = without_positions(options.name);
  std::vector<const ListedKey*> found;
  std::vector<std::string> known;
  for (const ListedKey& listed : keys) {
    if (listed.path() == name) found.push_back(&listed);
    known.push_back(listed.path());
  }
  if (!found.empty()) {
    print_keys(found, options.format);
    return ExitCode::done;
  }
  std::vector<Word> words = vocabulary();
  for (const Word& word : words) known.emplace_back(word.word);
  std::erase_if(words, [&](const Word& word) { return !same_word(word.word, name); });
  if (!words.empty()) print_words(words, options.format);
  for (const TableDeclaration& declaration : tables) {
    known.push_back(declaration.path);
    if (declaration.path != name || !words.empty()) continue;
    if (code != nullptr && options.format != OutputFormat::table) {
      print_code(*code, options.format, rows_of_table(declaration, tables, keys).json());
      return ExitCode::done;
    }
    print_table(declaration, tables, keys, options.format);
    if (code != nullptr) {
      print("\nThe error code of this name:\n\n");
      print_code(*code, options.format);
    }
    return ExitCode::done;
  }
  // Users remember keys without their table: `timeout` finds readout.builder.timeout.
  for (const ListedKey& listed : keys) {
    if (listed.key.name == name) found.push_back(&listed);
  }
  if (!words.empty()) {
    if (options.format == OutputFormat::table && !found.empty())
      print_folded(fmt::format("\nA key of this name: rodeo explain {}\n", found.front()->path()));
    return ExitCode::done;
  }
  if (!found.empty()) {
    print_keys(found, options.format);
    return ExitCode::done;
  }
  for (const ErrorCode& each : error_codes()) known.emplace_back(each.code);
  std::string next = base::did_you_mean(name, known);
  if (next.empty())
    next =
        "`rodeo explain readout` shows a table, docs/reference/configuration.md every key; the author of a plug-in "
        "explains its counters";
  return std::unexpected(Error{"cli.unknown_name",
                               fmt::format("there is no key, table, error code, counter or condition `{}`", options.name),
                               {},
                               std::move(next)});
}

}  // namespace

void add_explain(Command& root) {
  auto options = std::make_shared<ExplainOptions>();
  Command& verb = root.verb("explain", "Explains a configuration key, an error code, a counter or the condition of a run");
  verb.example("rodeo explain readout.builder.timeout", "a key: its meaning, default and range, and how to set it")
      .example("rodeo explain readout.input", "a table with all its keys")
      .example("rodeo explain config.unknown_key", "an error code: cause and remedy");
  verb.example("rodeo explain late", "a counter of a report, a condition (INCOMPLETE), or what limits a run (builder)");
  verb.option("NAME", options->name, "Key, table, error code, counter, condition, or a stage in `limited by`").required();
  verb.option("--plugin", options->plugins, "Load a plug-in to explain its keys").value_name("LIB");
  verb.output(options->format);
  verb.run([options] { return explain(*options); });
}

}  // namespace rodeo::cli
