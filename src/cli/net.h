// Verbs of `rodeo net`, each in a file of its own; called by net.cpp.
#pragma once

#include "cli/command.h"

namespace rodeo::cli {

void add_net_formula(Command& net);
void add_net_lab(Command& net);

}  // namespace rodeo::cli
