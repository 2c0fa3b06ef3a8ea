// What a running readout answers on its control socket, and what the command line asks it. Protocol: docs/protocols/control.md.
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

/// What the control socket of a readout is asked about, and what requests have done to it. One thread.
struct ControlledReadout {
  Application& application;
  process::ProcessIdentity identity;
  bool left = false;                  ///< held, and told to end before it was told a run
  std::optional<Error> failure = {};  ///< it was told to start and could not: it has to end

  /// The end in order, in any phase.
  void stop();
};

/// The answer to one line; never throws. Called between two steps of the application, by its thread.
std::string answer_request(ControlledReadout& readout, const std::string& request);

/// The same while the application is being made: the status, and nothing else. `stop` is set if the end is asked for.
std::string answer_while_launching(const ReadoutSettings& settings, const process::ProcessIdentity& identity,
                                   const std::string& request, std::atomic<bool>& stop);

/// Sends a request to the readout of this name - empty: the only one that runs - and returns the `reply` member of its answer.
/// Errors: process.unreachable, process.which_readout, and what the readout refuses with the code it gives.
Result<Json> ask_readout(const std::string& name, const Json& request);

/// The control socket's file name: "NAME.control".
std::string control_socket_name(const std::string& readout_name);

}  // namespace rodeo::readout
