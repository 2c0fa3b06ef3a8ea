// The declarations as a JSON Schema (draft 7), for editors that complete and check TOML.
#pragma once

#include <span>

#include "base/registry.h"
#include "settings/declarations.h"
#include "settings/json.h"

namespace rodeo::settings {

/// Includes the components of the registry; a table of a component allows only the keys of its `type`.
Json json_schema(std::span<const TableDeclaration> declarations, const base::ComponentRegistry& registry);

}  // namespace rodeo::settings
