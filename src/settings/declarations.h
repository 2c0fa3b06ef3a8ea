// The tables and keys that a configuration may contain, declared by the code that reads them. One list of declarations
// checks files, fills in defaults, and writes the reference and the JSON Schema.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/registry.h"
#include "rodeo/parameters.h"

namespace rodeo::settings {

using base::ComponentKind;

/// A key that names a further component, whose keys are in the same table: `work = "verify"`.
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
  /// The table exists only if the file has it. Otherwise a single table that is left out has its defaults.
  bool optional = false;
  /// The table describes a component of this kind: `type` names it, and the table has its keys in addition to `keys`.
  std::optional<ComponentKind> component = std::nullopt;
  /// The value of `type` if the file has none; empty: the file must have one.
  std::string default_type = {};
  /// They apply to components that declare a key of that name.
  std::vector<JoinedSlot> joined = {};
};

}  // namespace rodeo::settings
