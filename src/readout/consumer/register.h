// Registers the consumers and works of the default library.
#pragma once

#include "rodeo/plugin.h"

namespace rodeo::readout {

void register_consumers(Registry& registry);
void register_works(Registry& registry);

}  // namespace rodeo::readout
