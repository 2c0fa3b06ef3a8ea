// ROD data in Rodeo's format: chunk records, each a 2-word header and the chunk's bytes
// (docs/reference/formats/rod-data.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/decode_error.h"
#include "rodeo/chunk_record.h"

namespace rodeo::formats {

/// For the inner loops of builders: the size of a record with a chunk of fewer than kLongChunkBytes, and its header, as 8
/// bytes of memory, from a header with size 0.
constexpr std::uint32_t short_record_bytes(std::uint32_t bytes) { return sizeof(ChunkHeader) + (bytes + 3) / 4 * 4; }
constexpr std::uint64_t short_header(std::uint64_t header, std::uint32_t bytes) {
  return header | (sizeof(ChunkHeader) + bytes);
}

struct ChunkRecord {
  ChunkHeader header;
  std::size_t offset = 0;  ///< offset of the header in the ROD data
  std::span<const std::byte> bytes;
};

/// Decodes the record at `offset` of the ROD data and moves `offset` behind its padding. Padding must be zero.
Decoded<ChunkRecord> next_chunk(std::span<const std::byte> rod_data, std::size_t& offset);

/// Calls visit(const ChunkRecord&) for each record; ends at the first one that does not decode.
template <typename Visit>
Decoded<void> for_each_chunk_record(std::span<const std::byte> rod_data, Visit&& visit) {
  for (std::size_t at = 0; at < rod_data.size();) {
    const Decoded<ChunkRecord> record = next_chunk(rod_data, at);
    if (!record) return std::unexpected(record.error());
    visit(*record);
  }
  return {};
}

/// Appends a record; header.size is set from the bytes.
void append_chunk_record(std::vector<std::byte>& rod_data, ChunkHeader header, std::span<const std::byte> bytes);

}  // namespace rodeo::formats
