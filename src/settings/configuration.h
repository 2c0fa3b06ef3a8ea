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

/// The source of a value, weakest first.
enum class Origin : std::uint8_t { fallback, file, environment, flag };

std::string_view origin_name(Origin origin);  ///< "default", "file", "environment", "flag"

/// One value with its history, for `rodeo check --effective`.
struct ConfiguredValue {
  Key key;
  Origin origin = Origin::fallback;
  std::string where;    ///< "run.toml:14:3", "RODEO_READOUT_BUILDER_TIMEOUT", "--set", or empty
  std::string written;  ///< the text in the file
  Place place;
};

/// One table, checked. Every declared key has a value.
class Table {
 public:
  const std::string& path() const { return path_; }    ///< "readout.consumer[1]"
  const std::string& type() const { return type_; }    ///< type of the component; empty if the table has none
  const std::string& where() const { return where_; }  ///< file:line:column; empty if the table is not in the file
  const Parameters& parameters() const { return parameters_; }

  /// True if a file, the environment or a flag set the key; false if it has its default.
  bool given(std::string_view key) const;

  /// The single table with this name below this one; nullptr if an optional table is left out. Throws std::logic_error if no
  /// such table is declared.
  const Table* table(std::string_view name) const;
  /// The elements of an array of tables, in order. Throws std::logic_error if no such array is declared.
  std::span<const Table> tables(std::string_view name) const;

  const std::vector<ConfiguredValue>& settings() const { return settings_; }

  /// Visits a table and all tables below it, depth first.
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

/// The place where a key was set - in the file, --set, a variable - or else the place of its table.
std::string where_of(const Table& table, std::string_view key);

/// The sources of a configuration, from the weakest: defaults, file, environment, overrides.
struct ConfigurationSource {
  std::filesystem::path file;
  std::optional<std::string> text = {};     ///< replaces the contents of the file; its name is then used in messages only
  std::vector<std::string> overrides = {};  ///< "readout.builder.timeout=20ms", "readout.rob[0].source_id=0x610001"
  bool environment = true;                  ///< RODEO_READOUT_BUILDER_TIMEOUT, RODEO_READOUT_ROB_0_SOURCE_ID
};

struct Configuration {
  std::filesystem::path file;
  Table root;

  /// Finds a table by its whole path, through single tables: "readout.builder". nullptr if an optional table is left out.
  const Table* table(std::string_view path) const;
};

/// All errors of a configuration at once, in the order of the file.
using ConfigurationErrors = std::vector<Error>;

/// Reads and checks a configuration. First loads its plug-ins (keys `plugins` and `plugin_directories` of any table) into
/// `plugins`, so that their components are known. Errors: config.*, those of the plug-in host, and base.unknown_component,
/// each with its place.
std::expected<Configuration, ConfigurationErrors> load_configuration(const ConfigurationSource& source,
                                                                     std::span<const TableDeclaration> declarations,
                                                                     const base::ComponentRegistry& registry,
                                                                     base::PluginHost& plugins);

}  // namespace rodeo::settings
