// Text files as people write them: read whole, and refused where they are no plain files or too long.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/error.h"

namespace rodeo::settings {

/// No configuration is as long.
inline constexpr std::size_t kMostTextBytes = std::size_t{16} << 20;

/// What is in a plain file; nothing else is waited for. Error config.unreadable, with the system's reason: it cannot be opened or read, is a
/// directory, a pipe or a device, or has more than `most` bytes.
Result<std::string> read_text_file(const std::filesystem::path& file, std::size_t most = kMostTextBytes);

}  // namespace rodeo::settings
