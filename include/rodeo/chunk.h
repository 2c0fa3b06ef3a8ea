// Chunk runs: the unit that moves from an input to a builder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rodeo/ids.h"

namespace rodeo {

/// The report of the link, the card or the router on a chunk. FELIX publishes no numeric values for these (its names are
/// FW_TRUNC, SW_TRUNC, FW_MALF, SW_MALF, FW_CRC); the bits are Rodeo's, and a fragment's chunk header has them as "felix
/// status".
namespace chunk_status {
inline constexpr std::uint8_t kOk = 0x00;
inline constexpr std::uint8_t kFirmwareTruncated = 0x01;
inline constexpr std::uint8_t kSoftwareTruncated = 0x02;
inline constexpr std::uint8_t kFirmwareMalformed = 0x04;
inline constexpr std::uint8_t kSoftwareMalformed = 0x08;
inline constexpr std::uint8_t kFirmwareCrc = 0x10;
inline constexpr std::uint8_t kTimeout = 0x20;
inline constexpr std::uint8_t kBusy = 0x40;
}  // namespace chunk_status

/// One chunk of a run whose chunks differ in size or status.
struct ChunkEntry {
  std::uint32_t offset = 0;  ///< bytes from ChunkRun::data
  std::uint32_t size = 0;    ///< bytes
  std::uint8_t status = 0;   ///< chunk_status bits
};

/// Consecutive chunks of one link in one piece of memory.
/// Uniform (entries == nullptr): chunk i is `size` bytes at data + i * stride. Otherwise chunk i is entries[i].
/// The memory belongs to the input and does not change until the page of the run is released.
struct ChunkRun {
  const std::byte* data = nullptr;
  const ChunkEntry* entries = nullptr;  ///< count entries, or nullptr for a uniform run
  std::uint32_t size = 0;               ///< bytes of each chunk of a uniform run
  std::uint32_t stride = 0;             ///< bytes from chunk to chunk of a uniform run
  std::uint32_t count = 0;              ///< number of chunks
  LinkIndex link = 0;                   ///< index into the list of links that the stream was opened with
  std::uint8_t status = 0;              ///< chunk_status bits of every chunk of a uniform run
  bool more_follows = false;            ///< count == 1 and the chunk continues in this link's next run

  std::span<const std::byte> chunk(std::uint32_t i) const {
    return entries == nullptr ? std::span{data + std::size_t{i} * stride, size}
                              : std::span{data + entries[i].offset, entries[i].size};
  }
  std::uint8_t chunk_status(std::uint32_t i) const { return entries == nullptr ? status : entries[i].status; }
};

}  // namespace rodeo
