// A configuration: TOML file, environment and flags, checked against the declarations and turned into Parameters by table.
#pragma once

#include <expected>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/plugin_host.h"
#include "settings/declarations.h"
#include "settings/toml_file.h"

namespace rodeo::settings {

/// Where a value comes from, weakest first.
enum class Origin : std::uint8_t { fallback, file, environment, flag };

std::string_view origin_name(Origin origin);  ///< "default", "file", "environment", "flag"

/// One value with its history, for `rodeo check --effective`.
struct ConfiguredValue {
  Key key;
  Origin origin = Origin::fallback;
  std::string where;    ///< "run.toml:14:3", "RODEO_READOUT_BUILDER_TIMEOUT", "--set", or empty
  std::string written;  ///< as in the file
  Place place;
};

/// One table, checked. Every declared key has a value.
class Table {
 public:
  const std::string& path() const { return path_; }    ///< "readout.consumer[1]"
  const std::string& type() const { return type_; }    ///< of the component; empty where the table has none
  const std::string& where() const { return where_; }  ///< file:line:column; empty if the file does not have it
  const Parameters& parameters() const { return parameters_; }

  /// Whether anybody set the key (a file, the environment or a flag), or it has its default.
  bool given(std::string_view key) const;

  /// The single table of that name below this one; nullptr where an optional one is left out. Throws std::logic_error if no such
  /// table is declared.
  const Table* table(std::string_view name) const;
  /// The elements of an array of tables, in order. Throws std::logic_error likewise.
  std::span<const Table> tables(std::string_view name) const;

  const std::vector<ConfiguredValue>& settings() const { return settings_; }

  /// A table and all below it, depth first.
  template <typename Visitor>
  void visit(Visitor&& visitor) const {
    visitor(*this);
    for (const Child& child : children_) {
      for (const Table& element : child.elements) element.visit(visitor);
    }
  }

 private:
  friend class ConfigurationBuilder;

  struct Child {
    std::string name;
    bool array = false;
    std::vector<Table> elements;
  };

  const Child& child(std::string_view name) const;

  std::string path_;
  std::string type_;
  std::string where_;
  Parameters parameters_;
  std::vector<ConfiguredValue> settings_;
  std::vector<Child> children_;
};

/// Where a key was set - a place in the file, --set, a variable - else where its table is.
std::string where_of(const Table& table, std::string_view key);

/// What a configuration is read from, in order of strength from the weakest: defaults, file, environment, overrides.
struct ConfigurationSource {
  std::filesystem::path file;
  std::optional<std::string> text = {};     ///< instead of what the file holds, whose name then stands in messages alone
  std::vector<std::string> overrides = {};  ///< "readout.builder.timeout=20ms", "readout.rob[0].source_id=0x610001"
  bool environment = true;                  ///< RODEO_READOUT_BUILDER_TIMEOUT, RODEO_READOUT_ROB_0_SOURCE_ID
};

struct Configuration {
  std::filesystem::path file;
  Table root;

  /// By whole path, through single tables: "readout.builder". nullptr where an optional one is left out.
  const Table* table(std::string_view path) const;
};

/// All errors of a configuration at once, in the order of the file.
using ConfigurationErrors = std::vector<Error>;

/// Reads and checks a configuration. Loads the plug-ins that it names (keys `plugins` and `plugin_directories` of any table)
/// into `plugins` first, so that their components are known. Errors: config.*, those of the plug-in host, and base.unknown_component, each with its place.
std::expected<Configuration, ConfigurationErrors> load_configuration(const ConfigurationSource& source,
                                                                     std::span<const TableDeclaration> declarations,
                                                                     const base::ComponentRegistry& registry,
                                                                     base::PluginHost& plugins);

}  // namespace rodeo::settings
