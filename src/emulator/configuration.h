// Turns a configuration into the settings of `rodeo emulate`.
#pragma once

#include <expected>
#include <filesystem>

#include "emulator/emulator.h"
#include "settings/configuration.h"

namespace rodeo::emulator {

using settings::Configuration;
using settings::ConfigurationErrors;

/// The emulator settings of a configuration, or all errors at once: everything that `rodeo emulate` refuses before it
/// starts. Error config.missing_key if there is nothing to emulate.
std::expected<EmulatorSettings, ConfigurationErrors> emulator_of(const Configuration& configuration);

/// The error for a file with nothing to emulate.
ConfigurationErrors no_emulator(const std::filesystem::path& file);

}  // namespace rodeo::emulator
