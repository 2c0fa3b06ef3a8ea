// An event file for measuring readers, and the C++ loop over it as the reference.
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

/// The sums of a reader, which show that it has read everything.
struct DataSums {
  std::uint64_t events = 0;
  std::uint64_t chunks = 0;
  std::uint64_t links = 0;
  std::uint64_t statuses = 0;
  std::uint64_t sizes = 0;
  std::uint64_t bytes = 0;  ///< sum of the chunks' bytes as numbers, if they were read
  std::uint32_t crc = 0;    ///< CRC-32 of all bytes in order, if requested

  bool operator==(const DataSums&) const = default;
};

struct DataPass {
  DataSums sums;
  double cpu_seconds = 0;  ///< CPU time of the process from opening the file to closing it; the process does no other work
};

enum class DataWork : std::uint8_t { columns, bytes, crc };

/// Maps the file, reads all events with the reader and decoder of rodeo.data, and adds up. Errors of the file.
Result<DataPass> read_in_a_loop(const std::string& path, bool checksums, DataWork work);

}  // namespace rodeo::bench
