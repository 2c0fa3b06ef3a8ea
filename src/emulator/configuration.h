// From a configuration to what `rodeo emulate` runs.
#pragma once

#include <expected>
#include <filesystem>

#include "emulator/emulator.h"
#include "settings/configuration.h"

namespace rodeo::emulator {

using settings::Configuration;
using settings::ConfigurationErrors;

/// What the emulator's part of a configuration says. All errors at once: everything that `rodeo emulate` refuses before it makes anything.
/// config.missing_key if there is nothing to emulate.
std::expected<EmulatorSettings, ConfigurationErrors> emulator_of(const Configuration& configuration);

/// What is said of a file in which nothing is to be emulated.
ConfigurationErrors no_emulator(const std::filesystem::path& file);

}  // namespace rodeo::emulator
