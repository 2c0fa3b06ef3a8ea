// The verbs of `rodeo control` and `rodeo runs` for completion and manual pages. Python declares them
// (python/rodeo/control/cli/describe.py).
#pragma once

#include <string_view>

#include "cli/command.h"

namespace rodeo::cli {

/// Adds the verbs and options of a noun ("control", "runs") from the file that the build writes beside the Python package.
/// Without this file, adds nothing.
void describe_python_noun(Command& noun, std::string_view name);

}  // namespace rodeo::cli
