// Lets a readout without a control room use the run database for its run number and its report. Python implements the
// database (python/rodeo/control/database/bare_readout.py).
#pragma once

#include <cstdint>
#include <string>

#include "cli/command.h"

namespace rodeo::cli {

/// Takes the next number of a database that is at least `least`; no other run gets it. Blocks. Errors: cli.python;
/// control.database, after the reason on stderr.
Result<std::uint32_t> number_of_database(const std::string& database, std::uint32_t least);

/// Adds the run of a report to the database, under the name of the readout. If this fails, writes the report to a file in
/// the current directory, and prints how to import it later. Blocks. Errors: cli.python, cli.output.
Result<ExitCode> report_to_database(const std::string& database, const std::string& readout, std::uint32_t run,
                                    const Json& report);

}  // namespace rodeo::cli
