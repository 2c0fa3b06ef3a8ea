// Common parts of `rodeo readout` and `rodeo demo`: a run with its control socket, its report and its exit status.
#pragma once

#include <functional>
#include <string>

#include "cli/command.h"
#include "readout/plan.h"
#include "readout/run/readout_run.h"
#include "readout/run_report.h"

namespace rodeo::cli {

/// Called once the run has ended and its files are closed. It adds to the JSON report, prints its findings on stderr, and
/// returns false if the data did not verify. It may make the run's condition worse.
using AfterRun = std::function<Result<bool>(readout::RunReport&, Json&)>;

/// Runs to the end, prints the report on stderr, and writes it to `json_file` unless the name is empty.
Result<ExitCode> run_to_report(readout::ReadoutPlan& plan, readout::RunLimits limits, const std::string& json_file,
                               const AfterRun& after, const readout::StatusAmender& amend = {});

}  // namespace rodeo::cli
