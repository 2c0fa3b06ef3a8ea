// A running emulator as others see it: its report, what it answers on its control socket, and how to ask it.
#pragma once

#include <string>

#include "base/error.h"
#include "emulator/emulator.h"
#include "process/process_identity.h"
#include "settings/json.h"

namespace rodeo::cli {

using settings::Json;

/// The report as `rodeo emulate --json` writes it (docs/emulator.md).
Json emulator_report_json(const emulator::EmulatorReport& report);

/// What the control socket of an emulator is asked about.
struct ControlledEmulator {
  process::ProcessIdentity identity;
  emulator::Emulator* emulator = nullptr;
  bool stop = false;  ///< its end has been asked for
};

/// The answer to one line on the control socket.
std::string answer_emulator(ControlledEmulator& controlled, const std::string& request);

/// "NAME.emulator": the control socket's file name.
std::string emulator_socket_name(const std::string& name);

/// Sends a request to the emulator of this name - empty: the only one that runs. Errors: process.unreachable,
/// process.which_emulator, and what it refuses with the code it gives.
Result<Json> ask_emulator(const std::string& name, const Json& request);

}  // namespace rodeo::cli
