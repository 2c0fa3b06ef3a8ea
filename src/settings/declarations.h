// What a configuration may contain: tables with their keys, declared by whoever reads them. One list of declarations checks files, fills
// in defaults, and writes the reference and the JSON Schema.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/registry.h"
#include "rodeo/parameters.h"

namespace rodeo::settings {

using base::ComponentKind;

/// A key of a table that names a further component, whose own keys stand in the same table: `work = "verify"`.
struct JoinedSlot {
  std::string key;
  ComponentKind kind = ComponentKind::work;
};

/// One table of the configuration.
struct TableDeclaration {
  enum class Form : std::uint8_t { single, array };  ///< [path] or [[path]]

  std::string path;  ///< "readout.builder"
  std::string help;  ///< first sentence short; more may follow
  std::vector<Key> keys = {};
  Form form = Form::single;
  /// Not there unless the file has it. Otherwise a single table that the file leaves out has its defaults.
  bool optional = false;
  /// The table describes a component of this kind: `type` names it, and its keys stand in the table besides `keys`.
  std::optional<ComponentKind> component = std::nullopt;
  /// `type` where the file does not say; empty: required.
  std::string default_type = {};
  /// In effect for components that declare a key of that name.
  std::vector<JoinedSlot> joined = {};
};

}  // namespace rodeo::settings
