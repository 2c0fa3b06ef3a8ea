// The selections of Rodeo's default library.
#pragma once

#include <string>
#include <vector>

#include "rodeo/plugin.h"

namespace rodeo::farm {

void register_selections(Registry& registry);

/// The words of a command that runs a module of Rodeo's Python package; the caller appends the module's name and arguments.
/// Call it before a selection `python` is made, and never while one runs.
void set_python_command(std::vector<std::string> words);
const std::vector<std::string>& python_command();

}  // namespace rodeo::farm
