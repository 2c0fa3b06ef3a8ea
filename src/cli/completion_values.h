// Values for completion that depend on this host or on the configuration, not on the tree of verbs.
#pragma once

#include <string_view>
#include <vector>

#include "cli/completion.h"

namespace rodeo::cli {

/// Cards by address, without opening them; keys of the configuration, with their values after a `=`; names for `rodeo
/// explain`. Never waits, reads only directories, and never fails: it leaves out unknown values.
std::vector<Candidate> completion_values(ValueKind kind, std::string_view typed);

}  // namespace rodeo::cli
