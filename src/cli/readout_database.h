// A readout without a control room takes part in the run database: its number comes from there, its report goes there. Python has the database
// (python/rodeo/control/bare_readout.py).
#pragma once

#include <cstdint>
#include <string>

#include "cli/command.h"

namespace rodeo::cli {

/// The next number of a database that is at least `least`: nobody else gets it. Blocks. Errors: cli.python; control.database, after the reason on stderr.
Result<std::uint32_t> number_of_database(const std::string& database, std::uint32_t least);

/// Makes a row of the run of a report, listed under the name of the readout. If that fails, the report stands in a file in the current directory instead,
/// and stderr says how it gets into the database later. Blocks. Errors: cli.python, cli.output.
Result<ExitCode> report_to_database(const std::string& database, const std::string& readout, std::uint32_t run,
                                    const Json& report);

}  // namespace rodeo::cli
