// An event file to measure readers with, and the C++ loop over it that others are compared with.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace rodeo::bench {

struct DataFileSettings {
  std::uint32_t events = 10'000;
  std::uint32_t links = 192;
  std::uint32_t chunk_bytes = 40;
};

/// Writes a closed event file of provable chunks. Error file.write.
Result<void> make_data_file(const std::string& path, const DataFileSettings& settings);

/// What a reader finds: sums that show that it has read everything.
struct DataSums {
  std::uint64_t events = 0;
  std::uint64_t chunks = 0;
  std::uint64_t links = 0;
  std::uint64_t statuses = 0;
  std::uint64_t sizes = 0;
  std::uint64_t bytes = 0;  ///< of the chunks' bytes as numbers, if they were read
  std::uint32_t crc = 0;    ///< CRC-32 of all of them one behind the other, if that was asked for

  bool operator==(const DataSums&) const = default;
};

struct DataPass {
  DataSums sums;
  double cpu_seconds = 0;  ///< of the process, which does nothing else, from opening the file to closing it
};

enum class DataWork : std::uint8_t { columns, bytes, crc };

/// Maps the file, walks it event by event with the reader and the decoder that rodeo.data uses, and adds up. Errors of the file.
Result<DataPass> read_in_a_loop(const std::string& path, bool checksums, DataWork work);

}  // namespace rodeo::bench
