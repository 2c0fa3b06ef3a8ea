// Which links become which ROB: the lists of the settings, checked against each other and against what the input delivers.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "readout/settings.h"
#include "rodeo/builder.h"

namespace rodeo::readout {

/// Links that ROBs have taken, with the ROB.
using TakenLinks = std::map<Fid, SourceId>;

/// The links of one ROB, which are taken from then on. `input_links`: what the input delivers; nothing where only the running input
/// knows - then a ROB without a list has none here, and lists are only compared with each other. Throws SetupError: readout.no_links,
/// readout.link_ids, readout.unknown_link, readout.duplicate_link.
std::vector<BuilderLink> rob_links(const RobSettings& rob, std::optional<std::span<const Fid>> input_links,
                                   TakenLinks& taken);

/// The free string that says which links a ROB has: "Rodeo-Links=0x00610001: 0x00540000+8 0x00580000", ids and runs of neighbours, in order.
std::string links_string(SourceId source_id, std::span<const BuilderLink> links);

/// Throws SetupError if there is no ROB (readout.no_rob) or two have one source id (readout.duplicate_rob).
void check_source_ids(std::span<const RobSettings> robs);

}  // namespace rodeo::readout
