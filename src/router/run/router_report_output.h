// The report of a router for programs and for people.
#pragma once

#include <string>

#include "router/router_report.h"
#include "settings/json.h"

namespace rodeo::router {

using settings::Json;

/// As docs/reference/run-report.md describes it.
Json report_json(const RouterReport& report);

/// A running router: the report so far, and where it stands.
Json status_json(const RouterReport& so_far, const RouterStatus& status);

/// What came on each link so far, those of the trigger's list included.
Json links_json(const RouterStatus& status);

/// Some lines to read on a terminal, without colours.
std::string report_text(const RouterReport& report);

}  // namespace rodeo::router
