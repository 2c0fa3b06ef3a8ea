// The live view of a running router: a block of lines for a terminal, a line for a log.
#pragma once

#include <string>
#include <vector>

#include "process/live_view.h"
#include "router/router_status.h"
#include "router/settings.h"

namespace rodeo::router {

/// Rates of each reader and subscriber between two looks, and the limit of the run.
std::vector<std::string> view_lines(const RouterSettings& settings, const RouterStatus& before, const RouterStatus& now,
                                    process::ViewStyle style);

/// The same in one line, for logs.
std::string view_line(const RouterStatus& before, const RouterStatus& now);

}  // namespace rodeo::router
