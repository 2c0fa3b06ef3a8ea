// Finds what a run would refuse, without a run: takes no memory, makes no file, touches no card.
#pragma once

#include <string>
#include <vector>

#include "readout/settings.h"
#include "settings/configuration.h"

namespace rodeo::readout {

using settings::ConfigurationErrors;

/// Adds the errors in ROBs, links and consumers of these settings that show without a look at files and devices.
void refuse_what_cannot_run(const ReadoutSettings& settings, ConfigurationErrors& errors);

/// Warnings, a sentence each, of losses that the settings cause. For example: chunks wait in the input for longer than
/// events wait for them.
std::vector<std::string> warnings_of(const ReadoutSettings& settings);

/// The errors that the played recording or event file shows; for `rodeo check`. The links of a card cannot be checked.
void refuse_what_is_not_there(const ReadoutSettings& settings, ConfigurationErrors& errors);

}  // namespace rodeo::readout
