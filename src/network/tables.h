// The tables [network...] of a configuration: a network of one's own, and what to find out about it.
#pragma once

#include <vector>

#include "settings/declarations.h"

namespace rodeo::network {

using settings::TableDeclaration;

/// Keys of topology, traffic, switch and simulation are those of network/scenario_settings.h.
std::vector<TableDeclaration> network_tables();

}  // namespace rodeo::network
