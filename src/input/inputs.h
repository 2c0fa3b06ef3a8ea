// The inputs of the default library.
#pragma once

#include "rodeo/plugin.h"

namespace rodeo::input {

void register_inputs(Registry& registry);

}  // namespace rodeo::input
