// The list of all possible keys with their tables: the base of `rodeo explain`, the reference and the JSON Schema.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/registry.h"
#include "settings/declarations.h"

namespace rodeo::settings {

/// A key of a table, or of a component that can be in it.
struct ListedKey {
  const TableDeclaration* table = nullptr;
  const base::ComponentRegistry::Component* component = nullptr;  ///< nullptr: a key of the table itself
  std::string slot;  ///< the key that names the component: "type", "work"; empty for a key of the table
  Key key;

  std::string path() const { return table->path + "." + key.name; }
};

/// The key that names the component of such a table.
Key type_key(const TableDeclaration& table, const base::ComponentRegistry& registry);

/// Lists the keys in the order of the declarations: a slot's `type` first, then the table's own keys, then those of each
/// component. The result refers to both arguments.
std::vector<ListedKey> list_keys(std::span<const TableDeclaration> declarations, const base::ComponentRegistry& registry);

}  // namespace rodeo::settings
