// Files that are there whole or not at all: written from first to last byte, renamed, sealed. None of it writes over an existing file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace rodeo::storage {

/// Writes a file from its first byte to its last and flushes it to the disk. Error "file.write", and then there is none.
Result<void> write_file(const std::string& path, std::span<const std::byte> bytes);

/// Renames, never over an existing file: error "file.exists". File systems that cannot do it in one step get a check before.
Result<void> rename_new(const std::string& from, const std::string& to);

/// Closes a file for good: writes the CRC digits, flushes file and directory to the disk, renames `writing` to `closed` (never
/// over an existing file). All bytes are in the file already. Blocks. Errors "file.write", "file.exists".
Result<void> seal_event_file(const std::string& writing, const std::string& closed, std::size_t crc_offset,
                             std::uint32_t crc);

}  // namespace rodeo::storage
