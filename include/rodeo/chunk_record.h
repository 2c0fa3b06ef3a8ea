// The chunk record: the form of a chunk in a fragment's ROD data, with its sizes, writer and reader
// (docs/reference/formats/rod-data.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace rodeo {

/// Software ROD status of a chunk, in its header.
namespace chunk_flag {
inline constexpr std::uint8_t kTruncated = 0x01;     ///< the chunk did not fit the slice; its rest is cut off
inline constexpr std::uint8_t kCorrupt = 0x02;       ///< the integrity check failed
inline constexpr std::uint8_t kBcidMismatch = 0x04;  ///< BCID differs from the event's
}  // namespace chunk_flag

/// The header of each chunk in the ROD data: two little-endian words. The bytes follow, padded with zeros to a word.
struct ChunkHeader {
  std::uint16_t size = 0;         ///< bytes, this header included, or kLongChunk
  std::uint8_t felix_status = 0;  ///< chunk_status bits
  std::uint8_t rodeo_status = 0;  ///< chunk_flag bits
  std::uint32_t link_id = 0;      ///< detector resource id of the link, from the configuration
};
static_assert(sizeof(ChunkHeader) == 8);

/// Marks a chunk whose size does not fit ChunkHeader::size; its true size is in the word before its bytes.
inline constexpr std::uint16_t kLongChunk = 0xffff;
/// Chunks of at least this size are marked with kLongChunk.
inline constexpr std::uint32_t kLongChunkBytes = kLongChunk - sizeof(ChunkHeader);

/// Sizes of the parts of a record: before the chunk's bytes, behind them, and in all.
constexpr std::size_t chunk_header_bytes(std::size_t bytes) {
  return sizeof(ChunkHeader) + (bytes >= kLongChunkBytes ? sizeof(std::uint32_t) : 0);
}
constexpr std::size_t chunk_padding_bytes(std::size_t bytes) { return (4 - bytes % 4) % 4; }
constexpr std::size_t chunk_record_bytes(std::size_t bytes) {
  return chunk_header_bytes(bytes) + bytes + chunk_padding_bytes(bytes);
}

/// Writes chunk_header_bytes(bytes); sets header.size from `bytes`. The caller then writes the chunk's bytes, and zeros up
/// to the next word.
inline void store_chunk_header(std::byte* at, ChunkHeader header, std::size_t bytes) {
  const bool is_long = bytes >= kLongChunkBytes;
  header.size = is_long ? kLongChunk : static_cast<std::uint16_t>(sizeof header + bytes);
  std::memcpy(at, &header, sizeof header);
  const auto size = static_cast<std::uint32_t>(bytes);
  if (is_long) std::memcpy(at + sizeof header, &size, sizeof size);
}

/// Writes a whole record; sets header.size from the bytes. Returns its end.
inline std::byte* store_chunk(std::byte* at, const ChunkHeader& header, std::span<const std::byte> bytes) {
  store_chunk_header(at, header, bytes.size());
  at += chunk_header_bytes(bytes.size());
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
  std::memset(at + bytes.size(), 0, chunk_padding_bytes(bytes.size()));
  return at + bytes.size() + chunk_padding_bytes(bytes.size());
}

/// The sizes of a record.
struct ChunkExtent {
  ChunkHeader header;
  std::size_t header_bytes = 0;  ///< size before the chunk's bytes; 0: the header is incomplete, or its size is impossible
  std::size_t bytes = 0;         ///< size of the chunk
};

/// Reads the header at the beginning of `from`; the chunk's bytes may be elsewhere.
inline ChunkExtent load_chunk_header(std::span<const std::byte> from) {
  ChunkExtent chunk;
  if (from.size() < sizeof(ChunkHeader)) return chunk;
  std::memcpy(&chunk.header, from.data(), sizeof(ChunkHeader));
  if (chunk.header.size == kLongChunk) [[unlikely]] {
    std::uint32_t size = 0;
    if (from.size() - sizeof(ChunkHeader) < sizeof size) return chunk;
    std::memcpy(&size, from.data() + sizeof(ChunkHeader), sizeof size);
    chunk.header_bytes = sizeof(ChunkHeader) + sizeof size;
    chunk.bytes = size;
  } else if (chunk.header.size >= sizeof(ChunkHeader)) {
    chunk.header_bytes = sizeof(ChunkHeader);
    chunk.bytes = chunk.header.size - sizeof(ChunkHeader);
  }
  return chunk;
}

/// Calls visit(const ChunkHeader&, record, bytes) for each whole record in `data`: `record` is the whole record, `bytes` the
/// chunk's bytes. Returns where it stopped: data.size() if nothing is left.
template <typename Byte, typename Visit>
std::size_t for_each_whole_chunk(std::span<Byte> data, Visit&& visit) {
  std::size_t at = 0;
  while (at < data.size()) {
    const std::span<Byte> rest = data.subspan(at);
    const ChunkExtent chunk = load_chunk_header(rest);
    const std::size_t record = chunk.header_bytes + chunk.bytes + chunk_padding_bytes(chunk.bytes);
    if (chunk.header_bytes == 0 || record > rest.size()) break;
    visit(chunk.header, rest.first(record), rest.subspan(chunk.header_bytes, chunk.bytes));
    at += record;
  }
  return at;
}

}  // namespace rodeo
