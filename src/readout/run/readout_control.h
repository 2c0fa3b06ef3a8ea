// What a running readout answers on its control socket, and what the command line asks it. Protocol: docs/protocols/control.md.
#pragma once

#include <string>

#include "base/error.h"
#include "readout/application.h"
#include "settings/json.h"

namespace rodeo::readout {

using settings::Json;

/// The answer to one line; never throws. Called between two steps of the application, by its thread.
std::string answer_request(Application& application, const std::string& request);

/// Sends a request to the readout of this name - empty: the only one that runs - and returns the `reply` member of its answer.
/// Errors: process.unreachable, process.which_readout, and what the readout refuses with the code it gives.
Result<Json> ask_readout(const std::string& name, const Json& request);

/// The control socket's file name: "NAME.control".
std::string control_socket_name(const std::string& readout_name);

}  // namespace rodeo::readout
