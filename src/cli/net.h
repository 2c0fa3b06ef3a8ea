// Verbs of `rodeo net`, each in a file of its own; called by net.cpp.
#pragma once

#include "cli/command.h"

namespace rodeo::cli {

void add_net_figures(Command& net);
void add_net_formula(Command& net);
void add_net_lab(Command& net);
void add_net_plot(Command& net);
void add_net_simulate(Command& net);
void add_net_size(Command& net);
void add_net_sweep(Command& net);

}  // namespace rodeo::cli
