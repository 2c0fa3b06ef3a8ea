// The links of each ROB. Compares the lists of the settings with each other and with the links of the input.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "readout/settings.h"
#include "rodeo/builder.h"

namespace rodeo::readout {

/// Links that already belong to a ROB.
using AssignedLinks = std::map<Fid, SourceId>;

/// The links of one ROB; marks them as taken. `input_links`: the links that the input delivers, or nothing if only the
/// running input knows them. In that case a ROB without a list gets no links here, and lists are compared only with each
/// other. Throws SetupError: readout.no_links, readout.link_ids, readout.unknown_link, readout.duplicate_link.
std::vector<BuilderLink> rob_links(const RobSettings& rob, std::optional<std::span<const Fid>> input_links,
                                   AssignedLinks& assigned);

/// The free string with the links of a ROB: "Rodeo-Links=0x00610001: 0x00540000+8 0x00580000". It contains ids and runs of
/// neighbours, in order.
std::string links_string(SourceId source_id, std::span<const BuilderLink> links);

/// Throws SetupError if there is no ROB (readout.no_rob) or if two have the same source id (readout.duplicate_rob).
void check_source_ids(std::span<const RobSettings> robs);

}  // namespace rodeo::readout
