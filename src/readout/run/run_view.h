// What a person sees of a run: a block of lines for a terminal, a line for a log.
#pragma once

#include <string>
#include <vector>

#include "process/live_view.h"
#include "readout/readout_status.h"
#include "readout/settings.h"

namespace rodeo::readout {

using process::ViewStyle;

/// The block for a terminal: rates between two looks, totals, fill levels, what limits the run. No line is wider than the
/// terminal: what does not fit goes on in the next, and no number is cut.
std::vector<std::string> view_lines(const ReadoutSettings& settings, const ReadoutStatus& before, const ReadoutStatus& now,
                                    ViewStyle style);

/// The same in one line, for logs.
std::string view_line(const ReadoutStatus& before, const ReadoutStatus& now);

}  // namespace rodeo::readout
