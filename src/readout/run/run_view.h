// The view of a run for a user: a block of lines for a terminal, one line for a log.
#pragma once

#include <string>
#include <vector>

#include "process/live_view.h"
#include "readout/readout_status.h"
#include "readout/settings.h"

namespace rodeo::readout {

using process::ViewStyle;

/// The block for a terminal: rates between two statuses, totals, fill levels, and what limits the run. No line is wider than
/// the terminal. Text that does not fit continues in the next line; no number is cut.
std::vector<std::string> view_lines(const ReadoutSettings& settings, const ReadoutStatus& before, const ReadoutStatus& now,
                                    ViewStyle style);

/// The view in one line, for logs.
std::string view_line(const ReadoutStatus& before, const ReadoutStatus& now);

}  // namespace rodeo::readout
