// A run of a readout for `rodeo readout` and `rodeo demo`.
#pragma once

#include "cli/process_verbs.h"
#include "readout/service.h"

namespace rodeo::cli {

/// Runs the readout to its end; see run_process(). The build is added to `more`.
Result<ExitCode> run_readout(readout::ReadoutConfiguration& configuration, const RunOptions& options,
                             readout::ReadoutService::Options more);

}  // namespace rodeo::cli
