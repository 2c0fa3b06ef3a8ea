// What a verb shows once, or again and again: `--watch`.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "cli/codes.h"
#include "cli/output.h"

namespace rodeo::cli {

/// Whether a `--watch`, or another time between two readings, can be; error cli.bad_value.
Result<void> check_interval(std::chrono::nanoseconds interval, std::string_view option = "--watch");

/// Shows it; with an interval again after that, until a signal comes or it fails, and the worst status of all. On a terminal a table takes the place
/// of the one before. `first`: nothing stands above it.
Result<ExitCode> watch(const std::optional<std::chrono::nanoseconds>& interval, OutputFormat format,
                       const std::function<Result<ExitCode>(bool first)>& show);

}  // namespace rodeo::cli
