// Runs a router from start to report: signals, limits, the control socket and the view around one Router.
#pragma once

#include <functional>
#include <optional>

#include "process/last_resort.h"
#include "process/line_socket.h"
#include "process/process_identity.h"
#include "router/router.h"
#include "router/router_report.h"

namespace rodeo::router {

/// Runs until `seconds` of the input, its end, a failure, a signal, or a request on `control` (may be nullptr). Calls
/// `observe` with every status. After a third Ctrl-C, or after stop_limit, it returns a report of condition ABORTED while
/// threads still run; the caller must exit with std::quick_exit or _exit.
RouterReport run_router(Router& router, const process::ProcessIdentity& identity, std::optional<double> seconds,
                        process::LineServer* control, const std::function<void(const RouterStatus&)>& observe = {},
                        process::LastResort* last_resort = nullptr);

}  // namespace rodeo::router
