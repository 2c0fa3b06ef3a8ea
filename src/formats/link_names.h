// The names that the owner of the links gave them. They are set once for the process, before its threads start.
#pragma once

#include <map>
#include <string>

#include "formats/fid.h"

namespace rodeo::formats {

/// Names by FID; they replace earlier ones.
void set_link_names(std::map<std::uint64_t, std::string> names);

/// The name of a link; empty without one.
const std::string& link_name(Fid fid);

/// A link for people: "0x1000000000540000", or "0x1000000000540000 (BIL A12)" if it has a name.
std::string named_link(Fid fid);

}  // namespace rodeo::formats
