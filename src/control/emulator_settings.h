// From a configuration to what `rodeo emulate` runs.
#pragma once

#include <expected>
#include <string>

#include "emulator/emulator.h"
#include "settings/configuration.h"
#include "settings/json.h"

namespace rodeo::control {

using settings::Configuration;
using settings::ConfigurationErrors;
using settings::ConfigurationSource;
using settings::Json;

/// What the emulator's part of a configuration says. All errors at once: everything that `rodeo emulate` refuses before it makes anything.
/// config.missing_key if there is nothing to emulate.
std::expected<emulator::EmulatorSettings, ConfigurationErrors> emulator_of(const Configuration& configuration);

/// Reads the emulator's part of a configuration. All errors at once; config.missing_key if there is no [emulator].
std::expected<emulator::EmulatorSettings, ConfigurationErrors> load_emulator(const ConfigurationSource& source);

/// The report as `rodeo emulate --json` writes it (docs/emulator.md).
Json emulator_report_json(const emulator::EmulatorReport& report);

/// The answer to one line on the control socket; `stop` is set if it asks for the end.
std::string answer_emulator(emulator::Emulator& emulator, const std::string& request, bool& stop);

/// "NAME.emulator": the control socket's file name.
std::string emulator_socket_name(const std::string& name);

/// Sends a request to the emulator of this name - empty: the only one that runs. Errors: control.unreachable,
/// control.which_emulator, and what it refuses with the code it gives.
Result<Json> ask_emulator(const std::string& name, const Json& request);

}  // namespace rodeo::control
