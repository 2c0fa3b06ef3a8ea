// `rodeo demo` in a control room, which starts, runs, shows and ends the system as for a shift crew.
#pragma once

#include <filesystem>
#include <optional>

#include "cli/command.h"
#include "cli/demo_parts.h"

namespace rodeo::cli {

/// Writes the system file into the directory and runs python/rodeo/control/cli/demo.py. This runs the system for the time of
/// the options, reads the files back and writes the report. Returns the exit status. If Python packages are missing, it
/// prints the command that installs them and starts nothing. Without --chain it then returns nullopt.
Result<std::optional<ExitCode>> run_in_control_room(const DemoOptions& options, const DemoCard& card,
                                                    const DemoDirectory& directory,
                                                    const std::filesystem::path& configuration);

}  // namespace rodeo::cli
