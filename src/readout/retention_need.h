// The builder's memory for kept fragments: a kept fragment holds its buffers until it is cleared.
#pragma once

#include <cstdint>

#include "readout/settings.h"
#include "settings/configuration.h"

namespace rodeo::readout {

/// Number of fragments of each ROB that handlers may hold at a time; 0 without a handler.
std::uint64_t most_held_fragments(const ReadoutSettings& settings);

/// Adds buffers for them to the builder if its table does not give their number, and refuses a given number that is too
/// small (readout.few_buffers): the builder would stop before the limit of kept fragments. Builders of plug-ins must provide
/// for this themselves.
void size_buffers_for_retention(const settings::Table& builder, ReadoutSettings& settings,
                                settings::ConfigurationErrors& errors);

}  // namespace rodeo::readout
