// Checks the cards that a configuration names.
#pragma once

#include "settings/configuration.h"

namespace rodeo::input {

/// Adds an error for each invalid card id of an input of type `card`, or if it has no card. Ignores inputs of other types.
void refuse_bad_cards(const settings::Table& input, settings::ConfigurationErrors& errors);

}  // namespace rodeo::input
