// Trigger information of frames of RDH pages: the orbit of the first page, or the number of the time frame.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rodeo/plugin.h"

namespace rodeo::readout {

/// The L1 id is the low 24 bits of the frame's number (formats/time_frame_numbers.h). The BCID is that of the first page,
/// the trigger type its low eight bits. Frames without their begin are malformed if no earlier frame had a begin: their
/// number is not known.
std::unique_ptr<TriggerExtractor> make_rdh_extractor(std::uint32_t orbits_per_frame);

/// The number of orbits in a chunk of this extractor; 0 for other extractors, whose ids count events of a trigger.
std::uint32_t orbits_of_chunks(const std::string& extractor, const Parameters& parameters);

void register_rdh_extractor(Registry& registry);

}  // namespace rodeo::readout
