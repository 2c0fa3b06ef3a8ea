// Output once or repeatedly: `--watch`.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "cli/codes.h"
#include "cli/output.h"

namespace rodeo::cli {

/// Checks the time of `--watch` or of another interval; error cli.bad_value.
Result<void> check_interval(std::chrono::nanoseconds interval, std::string_view option = "--watch");

/// Calls `show`; with an interval repeatedly, until a signal or an error. Returns the worst status. On a terminal each table
/// replaces the previous one. `first`: no output stands above it.
Result<ExitCode> watch(const std::optional<std::chrono::nanoseconds>& interval, OutputFormat format,
                       const std::function<Result<ExitCode>(bool first)>& show);

}  // namespace rodeo::cli
