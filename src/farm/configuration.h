// The tables [farm...] of a configuration.
#pragma once

#include <vector>

#include "settings/declarations.h"

namespace rodeo::farm {

/// [farm] and the tables below it.
std::vector<settings::TableDeclaration> farm_tables();

}  // namespace rodeo::farm
