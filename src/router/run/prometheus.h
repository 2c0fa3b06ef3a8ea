// A router's status as metrics in Prometheus' text format.
#pragma once

#include <string>

#include "router/router_status.h"
#include "router/settings.h"

namespace rodeo::router {

/// Text format 0.0.4. Names and labels: docs/reference/metrics.md.
std::string prometheus_text(const RouterSettings& settings, const RouterStatus& status);

}  // namespace rodeo::router
