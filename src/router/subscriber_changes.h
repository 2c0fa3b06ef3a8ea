// Messages when a subscriber connects, leaves or comes back.
#pragma once

#include <string>
#include <vector>

#include "router/router_status.h"

namespace rodeo::router {

/// Returns one sentence for each subscriber that has connected or left between the two statuses.
std::vector<std::string> subscriber_changes(const RouterStatus& before, const RouterStatus& now);

/// "readout (data) at 127.0.0.1:40213, tcp"
std::string text_of(const transport::Publisher::Subscriber& subscriber);

}  // namespace rodeo::router
