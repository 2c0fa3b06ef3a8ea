// Values that depend on this host or on the configuration: what completion offers beyond the tree of verbs.
#pragma once

#include <string_view>
#include <vector>

#include "cli/completion.h"

namespace rodeo::cli {

/// Cards by address, found without opening any; keys of the configuration, with their values behind a `=`; what `rodeo explain` knows. Waits for
/// nobody, reads directories only, and never fails: what cannot be known is not offered.
std::vector<Candidate> completion_values(ValueKind kind, std::string_view typed);

}  // namespace rodeo::cli
