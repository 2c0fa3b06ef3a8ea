// Reads text files whole; refuses other kinds of files, and files that are too long.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/error.h"

namespace rodeo::settings {

/// Longer than any configuration.
inline constexpr std::size_t kMostTextBytes = std::size_t{16} << 20;

/// The contents of a regular file; never blocks on a pipe. Error config.unreadable, with the system's reason: it cannot be
/// opened or read, is a directory, a pipe or a device, or has more than `most` bytes.
Result<std::string> read_text_file(const std::filesystem::path& file, std::size_t most = kMostTextBytes);

}  // namespace rodeo::settings
