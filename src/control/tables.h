// The tables of a Rodeo configuration: what one file may say of a system.
#pragma once

#include <vector>

#include "control/declarations.h"

namespace rodeo::control {

/// Every table there is, parents before children.
std::vector<TableDeclaration> system_tables();

}  // namespace rodeo::control
