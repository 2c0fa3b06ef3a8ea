// The secret that publishers and subscribers share.
#pragma once

#include <filesystem>
#include <string>

#include "base/error.h"

namespace rodeo::transport {

/// The text of a file without the end of its line; nothing for an empty path. Errors transport.secret_file: the file cannot
/// be read, is empty, is longer than 4096 bytes, or other users may read it.
Result<std::string> read_secret(const std::filesystem::path& file);

}  // namespace rodeo::transport
