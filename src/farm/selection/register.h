// The selections that Rodeo brings.
#pragma once

#include <string>
#include <vector>

#include "rodeo/plugin.h"

namespace rodeo::farm {

void register_selections(Registry& registry);

/// How a module of Rodeo's Python package is run: the words before its arguments, of which the last is the module's name. Before a selection `python` is
/// made; not while one runs.
void set_python_command(std::vector<std::string> words);
const std::vector<std::string>& python_command();

}  // namespace rodeo::farm
