// The verbs of another program, for completion and manual pages: as JSON, and as verbs of this command. `rodeo control` and
// `rodeo runs` are Python (python/rodeo/control/cli/describe.py), `rodeo bench` is the program rodeo-bench.
#pragma once

#include "cli/command.h"
#include "settings/json.h"

namespace rodeo::cli {

/// The options, examples, paragraphs and verbs of a verb, in the form that describe_as() reads.
settings::Json described(const Command& verb);

/// Adds options, examples, paragraphs and verbs from JSON:
/// {"options": [{"names", "value", "help", "many", "flag"}], "examples": [[command, text]], "paragraphs": [text],
///  "verbs": [{"name", "help", and the same lists}]}
void describe_as(Command& verb, const settings::Json& described);

/// describe_as() for a noun in Python ("control", "runs"), from the file that the build writes beside the Python package.
/// Without this file, adds nothing.
void describe_python_noun(Command& noun, std::string_view name);

}  // namespace rodeo::cli
