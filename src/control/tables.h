// The tables of a Rodeo configuration: what one file may say of a system.
#pragma once

#include <filesystem>
#include <vector>

#include "settings/declarations.h"

namespace rodeo::control {

using settings::TableDeclaration;

/// Every table there is, parents before children.
std::vector<TableDeclaration> system_tables();

/// Those that a file is checked against: a file that describes something else and has no [readout] needs none. A file that cannot be read
/// gives every table; reading it again says why.
std::vector<TableDeclaration> tables_for(const std::filesystem::path& file);

}  // namespace rodeo::control
