// Files that either exist completely or do not exist: written from first to last byte, renamed, sealed. Never overwrites an
// existing file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "storage/direct_file.h"

namespace rodeo::storage {

/// Writes a file from its first byte to its last and flushes it to the disk. Error "file.write"; then the file does not
/// exist.
Result<void> write_file(const std::string& path, std::span<const std::byte> bytes);

/// Renames, but never over an existing file: error "file.exists". File systems that cannot do this in one step are checked
/// first.
Result<void> rename_new(const std::string& from, const std::string& to);

/// Completes a finished file: writes the CRC digits, flushes it to the disk, renames it to `closed` (never over an existing
/// file). Blocks. Errors "file.write", "file.exists"; then the file keeps its old name.
Result<void> seal_event_file(DirectFile& file, const std::string& closed, std::size_t crc_offset, std::uint32_t crc);

/// Flushes the directory of a file, so that its name survives a power cut. Blocks. Error "file.write".
Result<void> flush_directory_of(const std::string& path);

}  // namespace rodeo::storage
