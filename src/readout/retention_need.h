// What fragments that are kept mean for the builder: its buffers are theirs for so long.
#pragma once

#include <cstdint>

#include "readout/settings.h"
#include "settings/configuration.h"

namespace rodeo::readout {

/// Fragments of each ROB that handlers may hold at a time; 0: there is no handler.
std::uint64_t held_of_a_rob(const ReadoutSettings& settings);

/// Gives the builder so many buffers more where its table does not say how many it has, and refuses fewer: it would stand still before what is kept
/// is as much as may be (readout.few_buffers). Builders of plug-ins see to it themselves.
void follow_retention(const settings::Table& builder, ReadoutSettings& settings, settings::ConfigurationErrors& errors);

}  // namespace rodeo::readout
