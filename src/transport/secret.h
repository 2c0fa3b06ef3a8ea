// The secret that publishers and subscribers share.
#pragma once

#include <filesystem>
#include <string>

#include "base/error.h"

namespace rodeo::transport {

/// What stands in a file, without the end of its line; nothing for an empty path. Errors transport.secret_file: it cannot be read, is empty, longer than
/// 4096 bytes, or others may read it.
Result<std::string> read_secret(const std::filesystem::path& file);

}  // namespace rodeo::transport
