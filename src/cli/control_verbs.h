// The verbs of `rodeo control` and `rodeo runs`, as completion and manual pages want them: Python has them (python/rodeo/control/describe.py).
#pragma once

#include <string_view>

#include "cli/command.h"

namespace rodeo::cli {

/// Adds the verbs and options of a noun ("control", "runs") from the file that the build has written beside the Python package. Without such a file, nothing.
void describe_python_noun(Command& noun, std::string_view name);

}  // namespace rodeo::cli
