// `rodeo demo` through the control room: the same system, started, run, shown and ended as a shift crew does it.
#pragma once

#include <filesystem>
#include <optional>

#include "cli/command.h"
#include "cli/demo_parts.h"

namespace rodeo::cli {

/// Writes the system file into the directory, runs it for the time of the options (python/rodeo/control/demo.py), reads the files of the run back, and
/// says what became of it. Nothing if there can be no control room here - its Python packages are missing -, which is said; then nothing was started.
Result<std::optional<ExitCode>> run_in_control_room(const DemoOptions& options, const DemoCard& card,
                                                    const DemoDirectory& directory,
                                                    const std::filesystem::path& configuration);

}  // namespace rodeo::cli
