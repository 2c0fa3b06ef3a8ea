#include "formats/rod_data.h"

#include "formats/words.h"

namespace rodeo::formats {

using enum DecodeFault;

Decoded<ChunkRecord> next_chunk(std::span<const std::byte> rod_data, std::size_t& offset) {
  const std::span<const std::byte> rest = rod_data.subspan(offset);
  const ChunkExtent chunk = load_chunk_header(rest);
  constexpr std::size_t kHeader = sizeof(ChunkHeader);
  if (chunk.header_bytes == 0) {
    if (rest.size() < kHeader) return decode_error(truncated, offset, "chunk header", rest.size(), kHeader);
    if (chunk.header.size != kLongChunk)
      return decode_error(too_small, offset, "chunk size in bytes", chunk.header.size, kHeader);
    return decode_error(truncated, offset + kHeader, "size of a long chunk", rest.size() - kHeader, kWordBytes);
  }
  const std::size_t end = chunk.header_bytes + chunk.bytes;
  const std::size_t padding = chunk_padding_bytes(chunk.bytes);
  if (end + padding > rest.size()) return decode_error(too_large, offset, "chunk size in bytes", end, rest.size());
  for (std::size_t i = end; i < end + padding; ++i) {
    const auto found = static_cast<std::uint64_t>(rest[i]);
    if (found != 0) return decode_error(wrong_value, offset + i, "padding of a chunk", found, 0);
  }
  ChunkRecord record{.header = chunk.header, .offset = offset, .bytes = rest.subspan(chunk.header_bytes, chunk.bytes)};
  offset += end + padding;
  return record;
}

void append_chunk_record(std::vector<std::byte>& rod_data, ChunkHeader header, std::span<const std::byte> bytes) {
  const std::size_t at = rod_data.size();
  rod_data.resize(at + chunk_record_bytes(bytes.size()));
  store_chunk(rod_data.data() + at, header, bytes);
}

}  // namespace rodeo::formats
