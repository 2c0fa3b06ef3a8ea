// A running emulator seen from other processes: its report, the answers on its control socket, and how to ask it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "emulator/emulator.h"
#include "process/process_identity.h"
#include "process/watchdog.h"
#include "settings/json.h"

namespace rodeo::cli {

using settings::Json;

/// The report as `rodeo emulate --json` writes it (docs/emulator.md).
Json emulator_report_json(const emulator::EmulatorReport& report);

/// Says whether triggers wait, and for what. They wait if triggers were offered since the last accepted one.
class WatchedTriggers {
 public:
  std::vector<process::WatchedPart> parts(const trigger::TriggerReport& trigger);

 private:
  std::uint64_t accepted_ = 0;
  std::uint64_t offered_ = 0;  ///< offered triggers when the last one was accepted
};

/// The data that the control socket of an emulator serves.
struct ControlledEmulator {
  process::ProcessIdentity identity;
  emulator::Emulator* emulator = nullptr;
  bool stop = false;  ///< a request has asked it to stop
  process::Watchdog watchdog{};
  WatchedTriggers triggers{};
  std::uint64_t next_look_ns = 0;
};

/// The answer to one line on the control socket.
std::string answer_emulator(ControlledEmulator& controlled, const std::string& request);

/// "NAME.emulator": the control socket's file name.
std::string emulator_socket_name(const std::string& name);

/// Sends a request to the emulator of this name (empty: the only running one). Errors: process.unreachable,
/// process.which_emulator, and the emulator's own refusals with their codes.
Result<Json> ask_emulator(const std::string& name, const Json& request);

}  // namespace rodeo::cli
