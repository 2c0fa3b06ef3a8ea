// Verbs of `rodeo route` that have their own files.
#pragma once

#include "cli/command.h"

namespace rodeo::cli {

void add_route_send(Command& route);

}  // namespace rodeo::cli
