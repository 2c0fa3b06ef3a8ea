#include "settings/configuration.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <map>
#include <ranges>
#include <stdexcept>

#include "base/nearest.h"
#include "settings/key_list.h"
#include "settings/key_value.h"

namespace rodeo::settings {

namespace fs = std::filesystem;

std::string_view origin_name(Origin origin) {
  switch (origin) {
    case Origin::fallback: return "default";
    case Origin::file: return "file";
    case Origin::environment: return "environment";
    case Origin::flag: return "flag";
  }
  return "";
}

bool Table::given(std::string_view key) const {
  const auto found =
      std::ranges::find_if(settings_, [&](const ConfiguredValue& setting) { return setting.key.name == key; });
  return found != settings_.end() && found->origin != Origin::fallback;
}

std::string where_of(const Table& table, std::string_view key) {
  const auto setting = std::ranges::find_if(
      table.settings(), [&](const ConfiguredValue& one) { return one.key.name == key && !one.where.empty(); });
  return setting == table.settings().end() ? table.where() : setting->where;
}

const Table::Child& Table::child(std::string_view name) const {
  const auto found = std::ranges::find(children_, name, &Child::name);
  if (found == children_.end()) throw std::logic_error(fmt::format("undeclared configuration table: {} in {}", name, path_));
  return *found;
}

const Table* Table::table(std::string_view name) const {
  const Child& found = child(name);
  if (found.array) throw std::logic_error(fmt::format("array of tables read as a single one: {} in {}", name, path_));
  return found.elements.empty() ? nullptr : &found.elements.front();
}

std::span<const Table> Table::tables(std::string_view name) const {
  const Child& found = child(name);
  if (!found.array) throw std::logic_error(fmt::format("single table read as an array: {} in {}", name, path_));
  return found.elements;
}

namespace {

/// Splits a path at its dots.
std::vector<std::string> names_in(std::string_view path) {
  std::vector<std::string> names;
  for (const auto name : std::views::split(path, '.')) names.emplace_back(name.begin(), name.end());
  return names;
}

}  // namespace

const Table* Configuration::table(std::string_view path) const {
  const Table* found = &root;
  for (const std::string& name : names_in(path)) found = found == nullptr ? nullptr : found->table(name);
  return found;
}

namespace {

std::string joined(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }

/// Declarations as a tree; nodes between declared tables have no keys.
struct Declared {
  std::string name;
  std::string path;
  TableDeclaration declaration;
  std::vector<Declared> below;
};

Declared tree_of(std::span<const TableDeclaration> declarations) {
  Declared root;
  for (const TableDeclaration& declaration : declarations) {
    Declared* at = &root;
    for (const std::string& name : names_in(declaration.path)) {
      auto next = std::ranges::find(at->below, name, &Declared::name);
      if (next == at->below.end()) {
        const std::string path = joined(at->path, name);
        next = at->below.insert(at->below.end(), {name, path, {.path = path, .help = {}}, {}});
      }
      at = &*next;
    }
    at->declaration = declaration;
  }
  return root;
}

std::string environment_name(std::string_view path) {
  std::string name = "RODEO_";
  for (const char c : path) {
    if (c == '.' || c == '[') {
      name += '_';
    } else if (c != ']') {
      name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
  }
  return name;
}

}  // namespace

/// Walks declarations and file together, and collects all errors.
class ConfigurationBuilder {
 public:
  ConfigurationBuilder(const ConfigurationSource& source, std::span<const TableDeclaration> declarations,
                       const base::ComponentRegistry& registry, base::PluginHost& plugins)
      : source_(source), declared_(tree_of(declarations)), registry_(registry), plugins_(plugins) {
    directory_ = source.file.parent_path();
  }

  std::expected<Configuration, ConfigurationErrors> build(const RawValue& raw) {
    for (const std::string& text : source_.overrides) add_override(text, raw);
    load_plugins(declared_, raw, "");
    Configuration configuration{source_.file, make(declared_, &raw, "", "")};
    for (const auto& [path, given] : overrides_) {
      if (!given.used) unused_override(path);
    }
    if (source_.environment) reject_unknown_variables(configuration.root);
    if (errors_.empty()) return configuration;
    std::ranges::stable_sort(errors_, {},
                             [](const Located& error) { return std::pair{error.place.line, error.place.column}; });
    ConfigurationErrors errors;
    for (Located& error : errors_) errors.push_back(std::move(error.error));
    return std::unexpected(std::move(errors));
  }

 private:
  struct Located {
    Place place;
    Error error;
  };
  struct Override {
    std::string text;
    bool used = false;
  };
  struct Given {
    RawValue raw;
    Origin origin = Origin::file;
    std::string where;
    Place place;
  };

  std::string where(Place place) const { return fmt::format("{}:{}:{}", source_.file.string(), place.line, place.column); }

  void complain(Place place, Error error) {
    if (error.where.empty() && place.line > 0) error.where = where(place);
    errors_.push_back({place, std::move(error)});
  }

  /// The index of an array's table with this `name`, or else with this `type` if only one table has it.
  static std::optional<std::size_t> position_of(const RawValue& array, std::string_view wanted) {
    for (const char* key : {"name", "type"}) {
      std::optional<std::size_t> found;
      for (std::size_t i = 0; i < array.elements.size(); ++i) {
        const RawValue* value = array.elements[i].find(key);
        if (value == nullptr || value->kind != RawValue::Kind::text || value->text != wanted) continue;
        if (found) return std::nullopt;
        found = i;
      }
      if (found) return found;
    }
    return std::nullopt;
  }

  void add_override(const std::string& text, const RawValue& raw) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return complain({}, {"config.bad_override", fmt::format("\"{}\" is not KEY=VALUE", text), "--set",
                           "write it like readout.builder.timeout=20ms"});
    }
    // rob.0.links and rob[0].links are the same; so are consumer.writer.directory and consumer[writer].directory.
    std::string dotted = text.substr(0, equals);
    std::ranges::replace(dotted, '[', '.');
    std::erase(dotted, ']');
    std::string path;
    const RawValue* at = &raw;
    for (const std::string& name : names_in(dotted)) {
      const bool index = !name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
      const bool in_array = at != nullptr && at->kind == RawValue::Kind::array;
      std::optional<std::size_t> position;
      if (in_array && !index) position = position_of(*at, name);
      if (in_array && index && name.size() < 6) position = std::stoul(name);
      if (position) {
        path += fmt::format("[{}]", *position);
        at = *position < at->elements.size() ? &at->elements[*position] : nullptr;
      } else {
        path = index ? fmt::format("{}[{}]", path, name) : joined(path, name);
        if (at != nullptr) at = at->find(name);
      }
    }
    overrides_[path] = {text.substr(equals + 1)};
  }

  void unused_override(const std::string& path) {
    std::vector<std::string> known(known_paths_.begin(), known_paths_.end());
    std::string next = base::did_you_mean(path, known);
    if (next.empty())
      next = "arrays of tables take a position or a name, [0] for the first; `rodeo check --effective` lists every key";
    complain({}, {"config.unknown_key", fmt::format("{} is not a known key", path), "--set", std::move(next)});
  }

  /// Plug-ins come first: they register types and keys.
  void load_plugins(const Declared& declared, const RawValue& raw, const std::string& path) {
    for (const Key& key : declared.declaration.keys) {
      if (key.type != KeyType::text_list || (key.name != "plugins" && key.name != "plugin_directories")) continue;
      const std::optional<Given> given = find(&raw, key, joined(path, key.name));
      if (!given) continue;
      const auto value = convert_value(key, given->raw, joined(path, key.name), directory_);
      if (!value) continue;
      for (const std::string& text : std::get<std::vector<std::string>>(*value)) {
        const fs::path base = given->origin == Origin::file ? directory_ : fs::path();
        if (key.name == "plugin_directories") {
          plugins_.add_directory(base / text);
        } else if (const auto loaded = plugins_.load(text, base); !loaded) {
          Error error = loaded.error();
          error.where = given->where;
          complain(given->place, std::move(error));
        }
      }
    }
    for (const Declared& below : declared.below) {
      const RawValue* inner = raw.find(below.name);
      static const RawValue kNothing;
      if (inner == nullptr) inner = &kNothing;
      if (inner->kind == RawValue::Kind::table) load_plugins(below, *inner, joined(path, below.name));
    }
  }

  /// The value from the strongest source that sets the key.
  std::optional<Given> find(const RawValue* raw, const Key& key, const std::string& path) {
    known_paths_.push_back(path);
    // A list or a text may be written as in a file; anything else is a word, and the key decides its type.
    const auto word = [](std::string text) {
      if (text.starts_with('[') || text.starts_with('"') || text.starts_with('\'')) {
        if (auto read = parse_toml("value = " + text, "--set")) {
          if (RawValue* value = read->find("value")) return *value;
        }
      }
      RawValue value;
      value.kind = RawValue::Kind::word;
      value.text = std::move(text);
      return value;
    };
    if (const auto found = overrides_.find(path); found != overrides_.end()) {
      found->second.used = true;
      return Given{word(found->second.text), Origin::flag, "--set", {}};
    }
    if (source_.environment) {
      const std::string name = environment_name(path);
      if (const char* text = std::getenv(name.c_str()); text != nullptr) {
        return Given{word(text), Origin::environment, name, {}};
      }
    }
    if (raw == nullptr) return std::nullopt;
    const auto member = std::ranges::find(raw->members, key.name, &RawValue::Member::name);
    if (member == raw->members.end()) return std::nullopt;
    return Given{member->value, Origin::file, where(member->value.place), member->value.place};
  }

  /// Makes one table; `raw` is nullptr if the file lacks it.
  Table make(const Declared& declared, const RawValue* raw, const std::string& path, const std::string& table_where) {
    Table table;
    table.path_ = path;
    table.where_ = table_where;
    const Place place = raw == nullptr ? Place{} : raw->place;
    std::vector<Key> keys = declared.declaration.keys;
    bool complete = true;  // all keys are known
    if (declared.declaration.component) complete = add_component(declared, raw, place, table, keys);

    for (const Key& key : keys) set(table, key, raw, place);
    if (raw != nullptr && complete) reject_unknown(declared, *raw, table, keys);
    for (const Declared& below : declared.below) add_below(below, raw == nullptr ? nullptr : raw->find(below.name), table);
    return table;
  }

  /// Reads `type` and adds the keys of the component, and of further components that it names. False if one is unknown.
  bool add_component(const Declared& declared, const RawValue* raw, Place place, Table& table, std::vector<Key>& keys) {
    const TableDeclaration& declaration = declared.declaration;
    Key type = type_key(declaration, registry_);
    type.type = KeyType::text;  // the registry's error for an unknown name says more
    set(table, type, raw, place);
    if (!table.parameters_.has("type")) return false;
    table.type_ = table.parameters_.text("type");
    if (!add_keys(*declaration.component, "type", table, keys)) return false;
    bool complete = true;
    for (const JoinedSlot& slot : declaration.joined) {
      const auto key = std::ranges::find(keys, slot.key, &Key::name);
      if (key == keys.end()) continue;
      // The other keys depend on the slot's value.
      const Key copy = *key;  // NOLINT(performance-unnecessary-copy-initialization): it outlives its place in `keys`
      keys.erase(key);
      set(table, copy, raw, place);
      if (!table.parameters_.has(slot.key) || table.parameters_.text(slot.key).empty()) continue;
      complete = add_keys(slot.kind, slot.key, table, keys) && complete;
    }
    return complete;
  }

  /// Appends the keys of the component in `slot` of this table.
  bool add_keys(ComponentKind kind, const std::string& slot, Table& table, std::vector<Key>& keys) {
    const auto found = registry_.find(kind, table.parameters_.text(slot));
    const auto setting =
        std::ranges::find_if(table.settings_, [&](const ConfiguredValue& one) { return one.key.name == slot; });
    if (!found) {
      Error error = found.error();
      error.what = fmt::format("{}: {}", joined(table.path_, slot), error.what);
      error.where = setting->where;
      complain(setting->place, std::move(error));
      return false;
    }
    for (const Key& key : (*found)->info.keys) {
      if (std::ranges::find(keys, key.name, &Key::name) == keys.end() && !table.parameters_.has(key.name))
        keys.push_back(key);
    }
    return true;
  }

  void set(Table& table, Key key, const RawValue* raw, Place place) {
    const std::string path = joined(table.path_, key.name);
    // The default of `name` may be the component's type.
    if (key.fallback == "{type}") key.fallback = table.type_;
    const std::optional<Given> given = find(raw, key, path);
    if (!given && key.required) {
      Error error{"config.missing_key", fmt::format("{} is required", path), table.where_, {}};
      if (error.where.empty()) error.where = source_.file.string();
      for (const std::string& choice : key.choices) error.next += (error.next.empty() ? "give one of: " : ", ") + choice;
      if (error.next.empty()) error.next = fmt::format("{}    rodeo explain {}", first_sentence(key.help), plain(path));
      return complain(place, std::move(error));
    }
    const fs::path directory = !given || given->origin == Origin::file ? directory_ : fs::path();
    auto value = given ? convert_value(key, given->raw, path, directory) : default_value(key, path, directory);
    if (!value) {
      Error error = value.error();
      if (given && given->origin != Origin::file) error.where = given->where;
      error.next += fmt::format("{}rodeo explain {}", error.next.empty() ? "" : "    ", plain(path));
      return complain(given ? given->place : place, std::move(error));
    }
    table.parameters_.set(key.name, std::move(*value));
    table.settings_.push_back(given ? ConfiguredValue{key, given->origin, given->where, given->raw.written(), given->place}
                                    : ConfiguredValue{key, Origin::fallback, {}, default_text(key), {}});
  }

  /// readout.consumer[1].queue in the form that `rodeo explain` takes.
  static std::string plain(std::string_view path) {
    std::string text;
    bool inside = false;
    for (const char c : path) {
      if (c == '[') inside = true;
      if (!inside) text += c;
      if (c == ']') inside = false;
    }
    return text;
  }

  static std::string first_sentence(const std::string& help) {
    const std::size_t end = help.find(". ");
    return end == std::string::npos ? help : help.substr(0, end + 1);
  }

  /// Reports variables for a table of this file that set no key.
  void reject_unknown_variables(const Table& root) {
    std::vector<std::string> known;
    for (const std::string& path : known_paths_) known.push_back(environment_name(path));
    for (char** variable = ::environ; *variable != nullptr; ++variable) {
      const std::string name(*variable, std::strcspn(*variable, "="));
      if (!name.starts_with("RODEO_") || std::ranges::find(known, name) != known.end()) continue;
      const auto of_table = std::ranges::find_if(
          declared_.below, [&](const Declared& table) { return name.starts_with(environment_name(table.path) + "_"); });
      // Variables for tables that this file lacks belong to another process.
      if (of_table != declared_.below.end() && root.child(of_table->name).elements.empty()) continue;
      std::string next = base::did_you_mean(name, known);
      if (of_table == declared_.below.end() && next.empty()) continue;
      if (next.empty()) next = "unset it; `rodeo check --effective` lists every key";
      complain({}, {"config.unknown_key", "this variable sets no key of the configuration", name, std::move(next)});
    }
  }

  void reject_unknown(const Declared& declared, const RawValue& raw, const Table& table, const std::vector<Key>& keys) {
    std::vector<std::string> known;
    for (const ConfiguredValue& setting : table.settings_) known.push_back(setting.key.name);
    for (const Key& key : keys) known.push_back(key.name);
    for (const Declared& below : declared.below) known.push_back(below.name);
    for (const RawValue::Member& member : raw.members) {
      if (std::ranges::find(known, member.name) != known.end()) continue;
      const bool is_table = member.value.kind == RawValue::Kind::table;
      Error error{"config.unknown_key",
                  fmt::format("{} is not a known {}", joined(table.path_, member.name), is_table ? "table" : "key")};
      if (!table.type_.empty()) error.what += fmt::format(" of `{}`", table.type_);
      const std::vector<std::string> near = base::nearest(member.name, known, 1);
      const auto key = near.empty() ? keys.end() : std::ranges::find(keys, near.front(), &Key::name);
      if (key != keys.end()) {
        error.next = fmt::format("did you mean `{}`? ({})    rodeo explain {}", key->name, summary(*key),
                                 plain(joined(table.path_, key->name)));
      } else if (!near.empty()) {
        error.next = fmt::format("did you mean `{}`?", near.front());
      } else {
        std::ranges::sort(known);
        known.erase(std::unique(known.begin(), known.end()), known.end());
        for (const std::string& name : known) error.next += (error.next.empty() ? "there are: " : ", ") + name;
      }
      complain(member.place, std::move(error));
    }
  }

  /// Adds the tables of one declaration below a table; `inner` is nullptr if the file has none.
  void add_below(const Declared& below, const RawValue* inner, Table& table) {
    const bool array = below.declaration.form == TableDeclaration::Form::array;
    const std::string path = joined(table.path_, below.name);
    Table::Child child{below.name, array, {}};
    const auto wrong = [&](const RawValue& found) {
      complain(found.place,
               {"config.wrong_type",
                fmt::format("{} must be {}, not {}", path, array ? "an array of tables" : "a table", found.describe()),
                {},
                fmt::format("write {} on a line of its own", array ? "[[" + plain(path) + "]]" : "[" + plain(path) + "]")});
    };
    if (inner == nullptr) {
      // A flag that sets one of its keys creates a table that the file leaves out.
      const bool set_by_flag =
          std::ranges::any_of(overrides_, [&](const auto& one) { return one.first.starts_with(path + "."); });
      if (!array && (!below.declaration.optional || set_by_flag)) child.elements.push_back(make(below, nullptr, path, ""));
    } else if (!array && inner->kind == RawValue::Kind::table) {
      child.elements.push_back(make(below, inner, path, where(inner->place)));
    } else if (array && inner->kind == RawValue::Kind::array) {
      for (std::size_t i = 0; i < inner->elements.size(); ++i) {
        const RawValue& element = inner->elements[i];
        if (element.kind == RawValue::Kind::table) {
          child.elements.push_back(make(below, &element, fmt::format("{}[{}]", path, i), where(element.place)));
        } else {
          wrong(element);
        }
      }
    } else {
      wrong(*inner);
    }
    table.children_.push_back(std::move(child));
  }

  const ConfigurationSource& source_;
  const Declared declared_;
  const base::ComponentRegistry& registry_;
  base::PluginHost& plugins_;
  fs::path directory_;
  std::map<std::string, Override> overrides_;
  std::vector<std::string> known_paths_;
  std::vector<Located> errors_;
};

std::expected<Configuration, ConfigurationErrors> load_configuration(const ConfigurationSource& source,
                                                                     std::span<const TableDeclaration> declarations,
                                                                     const base::ComponentRegistry& registry,
                                                                     base::PluginHost& plugins) {
  const Result<RawValue> raw = source.text ? parse_toml(*source.text, source.file.string()) : read_toml_file(source.file);
  if (!raw) return std::unexpected(ConfigurationErrors{raw.error()});
  return ConfigurationBuilder(source, declarations, registry, plugins).build(*raw);
}

}  // namespace rodeo::settings
