// `rodeo demo` in a control room, which starts, runs, shows and ends the system as for a shift crew.
#pragma once

#include <filesystem>
#include <optional>

#include "cli/command.h"
#include "cli/demo_parts.h"

namespace rodeo::cli {

/// Writes the system file into the directory, runs it for the time of the options (python/rodeo/control/cli/demo.py), reads
/// the files of the run back, and returns the exit status. Returns nullopt if no control room can run here because Python
/// packages are missing. It then prints this and starts nothing.
Result<std::optional<ExitCode>> run_in_control_room(const DemoOptions& options, const DemoCard& card,
                                                    const DemoDirectory& directory,
                                                    const std::filesystem::path& configuration);

}  // namespace rodeo::cli
