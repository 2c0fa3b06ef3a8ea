// Verbs of `rodeo route` that have a file of their own.
#pragma once

#include "cli/command.h"

namespace rodeo::cli {

void add_route_send(Command& route);

}  // namespace rodeo::cli
