// The default library: every component that Rodeo brings, registered through the interface that plug-ins use.
#pragma once

#include "rodeo/plugin.h"

namespace rodeo::readout {

void register_defaults(Registry& registry);

}  // namespace rodeo::readout
