// The ROD data as the software ROD fills it: chunk records, each a 2-word header and the chunk's bytes (docs/formats/rod-data.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "formats/decode_error.h"
#include "formats/words.h"
#include "rodeo/fragment.h"

namespace rodeo::formats {

/// Chunks of so many bytes and more have the long form: their size stands in a word of its own behind the header.
inline constexpr std::size_t kLongChunkBytes = kLongChunk - sizeof(ChunkHeader);

/// Of a record before the chunk's bytes, and of the whole record with its padding.
constexpr std::size_t chunk_header_bytes(std::size_t bytes) {
  return sizeof(ChunkHeader) + (bytes >= kLongChunkBytes ? kWordBytes : 0);
}
constexpr std::size_t chunk_record_bytes(std::size_t bytes) { return chunk_header_bytes(bytes) + padded_to_word(bytes); }

/// Writes chunk_header_bytes(bytes); header.size is set from `bytes`. The chunk's bytes and zeros up to the next word follow.
inline void store_chunk_header(std::byte* at, ChunkHeader header, std::size_t bytes) {
  const bool is_long = bytes >= kLongChunkBytes;
  header.size = is_long ? kLongChunk : static_cast<std::uint16_t>(sizeof header + bytes);
  std::memcpy(at, &header, sizeof header);
  if (is_long) store_word(at + sizeof header, static_cast<std::uint32_t>(bytes));
}

struct ChunkRecord {
  ChunkHeader header;
  std::size_t offset = 0;  ///< of the header, bytes from the start of the ROD data
  std::span<const std::byte> bytes;
};

/// Decodes the record at `offset` of the ROD data and moves `offset` behind its padding. Padding must be zero.
Decoded<ChunkRecord> next_chunk(std::span<const std::byte> rod_data, std::size_t& offset);

/// Calls visit(const ChunkRecord&) for each record; ends at the first that does not decode.
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
