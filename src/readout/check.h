// What a run would refuse, found without starting one: no memory is taken, no file made, no card touched.
#pragma once

#include <string>
#include <vector>

#include "readout/settings.h"
#include "settings/configuration.h"

namespace rodeo::readout {

using settings::ConfigurationErrors;

/// Adds what is wrong with ROBs, links and consumers of these settings, as far as it shows without looking at files and devices.
void refuse_what_cannot_run(const ReadoutSettings& settings, ConfigurationErrors& errors);

/// What a run would lose by its settings, though it can run: a sentence each. Chunks that wait in the input for longer than an event waits for them.
std::vector<std::string> warnings_of(const ReadoutSettings& settings);

/// The same, with a look at the recording that the input plays: for `rodeo check`. A card's links are known to nobody but the card.
void refuse_what_is_not_there(const ReadoutSettings& settings, ConfigurationErrors& errors);

}  // namespace rodeo::readout
