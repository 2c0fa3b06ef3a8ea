// The cards that a configuration names.
#pragma once

#include "settings/configuration.h"

namespace rodeo::input {

/// Adds an error for each key of an input `card` that names no card, or that nobody could ever answer to. Other inputs have nothing to refuse.
void refuse_bad_cards(const settings::Table& input, settings::ConfigurationErrors& errors);

}  // namespace rodeo::input
