#include "cli/build_text.h"

#include "cli/revision.h"

namespace rodeo::cli {

std::string build_text() { return RODEO_VERSION " " RODEO_REVISION; }

}  // namespace rodeo::cli
