// Answers of a running readout on its control socket, and the client for them. Protocol: docs/protocols/control.md.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "base/error.h"
#include "process/process_identity.h"
#include "readout/application.h"
#include "settings/json.h"

namespace rodeo::readout {

using settings::Json;

/// A readout with a control socket, and the effect of the requests up to now. One thread.
struct ControlledReadout {
  Application& application;
  process::ProcessIdentity identity;
  bool left = false;                  ///< ended by a request while it was held, before a run
  std::optional<Error> failure = {};  ///< the error of a failed start; the readout must end

  /// Ends the run in order, in any phase.
  void stop();
};

/// The answer to one line; never throws. Called between two steps of the application, by its thread.
std::string answer_request(ControlledReadout& readout, const std::string& request);

/// answer_request() while the application is being made: answers status, and sets `stop` for the command stop.
std::string answer_while_launching(const ReadoutSettings& settings, const process::ProcessIdentity& identity,
                                   const std::string& request, std::atomic<bool>& stop);

/// Sends a request to the readout of this name, or to the only one that runs if the name is empty. Returns the `reply`
/// member of its answer. Errors: process.unreachable, process.which_readout, and the errors of the readout, with their
/// codes.
Result<Json> ask_readout(const std::string& name, const Json& request);

/// The file name of the control socket: "NAME.control".
std::string control_socket_name(const std::string& readout_name);

}  // namespace rodeo::readout
