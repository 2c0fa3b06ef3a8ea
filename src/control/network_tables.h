// The tables [network...] of a configuration: a network of one's own, and what to find out about it.
#pragma once

#include <vector>

#include "control/declarations.h"

namespace rodeo::control {

/// Keys of topology, traffic, switch and simulation are those of network/scenario_text.h.
std::vector<TableDeclaration> network_tables();

}  // namespace rodeo::control
