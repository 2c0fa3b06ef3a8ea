// The report of a router for programs and for people.
#pragma once

#include <string>

#include "router/router_report.h"
#include "settings/json.h"

namespace rodeo::router {

using settings::Json;

/// In the form of docs/reference/run-report.md.
Json report_json(const RouterReport& report);

/// For a running router: the report so far, and its phase.
Json status_json(const RouterReport& so_far, const RouterStatus& status);

/// Chunks of each link so far, with the trigger list.
Json links_json(const RouterStatus& status);

/// Some lines for a terminal, without colours.
std::string report_text(const RouterReport& report);

}  // namespace rodeo::router
