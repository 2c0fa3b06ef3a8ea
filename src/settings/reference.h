// The declarations as a document: docs/reference/configuration.md.
#pragma once

#include <span>
#include <string>

#include "base/registry.h"
#include "settings/declarations.h"

namespace rodeo::settings {

/// Markdown: one section for each table, with a subsection for each component of the registry that it can have.
std::string configuration_reference(std::span<const TableDeclaration> declarations, const base::ComponentRegistry& registry);

}  // namespace rodeo::settings
