// `rodeo demo --chain` without a control room: this process starts, watches and ends every process of the chain in order.
#pragma once

#include <filesystem>

#include "cli/command.h"
#include "cli/demo_parts.h"

namespace rodeo::cli {

/// Runs the chain for the time of the options, reads the files of its recorder back, prints the report and writes it to the
/// options' file.
Result<ExitCode> run_chain(const DemoOptions& options, const DemoCard& card, const DemoDirectory& directory,
                           const std::filesystem::path& configuration);

/// For a finished run: reads the files back, adds the result to the report, prints the report and the sum over all
/// processes, and writes the report for programs if the options ask for it.
Result<ExitCode> judge_chain(const DemoOptions& options, Json report);

}  // namespace rodeo::cli
