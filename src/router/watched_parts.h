// The parts of a router that wait, each with the reason, for the watchdog: pure.
#pragma once

#include <vector>

#include "process/watchdog.h"
#include "router/router_status.h"

namespace rodeo::router {

std::vector<process::WatchedPart> watched_parts(const RouterStatus& status);

}  // namespace rodeo::router
