// Adler-32 and CRC-32 of a whole file, computed piece by piece on several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "storage/progress.h"

namespace rodeo::storage {

struct FileSums {
  std::uint32_t adler32 = 1;  ///< checksum of the file as it is: the value for a catalogue
  std::uint32_t crc32 = 0;    ///< checksum of the file with '0' for its CRC digits, if their offset was given
};

/// The result does not depend on the number of threads. `crc_digits`: offset of the CRC digits, inside the file.
FileSums file_sums(std::span<const std::byte> file, std::optional<std::size_t> crc_digits, unsigned threads,
                   const Progress& progress = {});

}  // namespace rodeo::storage
