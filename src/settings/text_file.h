// Text files as people write them: read whole, and refused where they never end.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/error.h"

namespace rodeo::settings {

/// No configuration is as long; /dev/zero is.
inline constexpr std::size_t kMostTextBytes = std::size_t{16} << 20;

/// What is in the file: a plain one, or whatever can be read to its end, such as a pipe. Error config.unreadable, with the
/// system's reason: it cannot be opened or read, is a directory, or has more than `most` bytes.
Result<std::string> read_text_file(const std::filesystem::path& file, std::size_t most = kMostTextBytes);

}  // namespace rodeo::settings
