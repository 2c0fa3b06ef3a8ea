// The control socket of a running router, and the client side for the command line. Protocol: docs/protocols/control.md.
#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "process/process_identity.h"
#include "process/watchdog.h"
#include "router/router.h"
#include "settings/json.h"

namespace rodeo::router {

/// The answer to one request line, with the parts that stand still; never throws. Called between two steps of the router, by
/// its thread.
std::string answer_request(Router& router, const process::ProcessIdentity& identity,
                           std::span<const process::StandingPart> standing, const std::string& request);

/// Sends a request to the router with this name - empty: the only running one - and returns the `reply` member of its
/// answer. Errors: process.unreachable, process.which_router, and refusals of the router.
Result<settings::Json> ask_router(const std::string& name, const settings::Json& request);

/// The control socket's file name: "NAME.router".
std::string control_socket_name(const std::string& router_name);

}  // namespace rodeo::router
