// The declarations as a page to read: docs/reference/configuration.md.
#pragma once

#include <span>
#include <string>

#include "base/registry.h"
#include "settings/declarations.h"

namespace rodeo::settings {

/// Markdown: one section a table, one below it for each component of the registry that can be in it.
std::string configuration_reference(std::span<const TableDeclaration> declarations, const base::ComponentRegistry& registry);

}  // namespace rodeo::settings
