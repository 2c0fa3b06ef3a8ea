// Where the documentation site is.
#pragma once

#include <filesystem>

namespace rodeo::cli {

/// The directory of the site of this build or installation. It may be missing: tools/docs builds it.
std::filesystem::path documentation_site();

}  // namespace rodeo::cli
