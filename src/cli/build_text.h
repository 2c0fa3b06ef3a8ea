// Which build of Rodeo this is.
#pragma once

#include <string>

namespace rodeo::cli {

/// "0.1.0 c0b99cc": version and revision.
std::string build_text();

}  // namespace rodeo::cli
