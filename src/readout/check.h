// Finds the errors that a run would refuse, without a run: allocates no memory, makes no file, accesses no card.
#pragma once

#include <string>
#include <vector>

#include "readout/settings.h"
#include "settings/configuration.h"

namespace rodeo::readout {

using settings::ConfigurationErrors;

/// Adds the errors in ROBs, links and consumers of these settings that can be found without files and devices.
void check_settings(const ReadoutSettings& settings, ConfigurationErrors& errors);

/// Warnings, a sentence each, about losses that the settings cause. Example: chunks wait in the input for longer than events
/// wait for them.
std::vector<std::string> warnings_of(const ReadoutSettings& settings);

/// Adds the errors that the played recording or event file shows; for `rodeo check`. The links of a card cannot be checked.
void check_input_files(const ReadoutSettings& settings, ConfigurationErrors& errors);

}  // namespace rodeo::readout
