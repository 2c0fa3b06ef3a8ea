#include "formats/rod_data.h"

#include <algorithm>

namespace rodeo::formats {

Decoded<ChunkRecord> next_chunk(std::span<const std::byte> rod_data, std::size_t& offset) {
  const auto error = [&](DecodeFault fault, std::size_t at, const char* field, std::uint64_t found, std::uint64_t expected) {
    return std::unexpected(DecodeError{fault, at, field, found, expected});
  };
  std::size_t at = offset;
  const auto left = [&] { return rod_data.size() - at; };
  if (left() < sizeof(ChunkHeader)) {
    return error(DecodeFault::truncated, at, "chunk header", left(), sizeof(ChunkHeader));
  }
  ChunkRecord record;
  record.offset = offset;
  std::memcpy(&record.header, rod_data.data() + at, sizeof record.header);
  at += sizeof record.header;
  std::size_t size = record.header.size;
  if (record.header.size == kLongChunk) {
    if (left() < kWordBytes) return error(DecodeFault::truncated, at, "size of a long chunk", left(), kWordBytes);
    size = load_word(rod_data.data() + at);
    at += kWordBytes;
  } else if (size < sizeof record.header) {
    return error(DecodeFault::too_small, offset, "chunk size in bytes", size, sizeof record.header);
  } else {
    size -= sizeof record.header;
  }
  if (padded_to_word(size) > left()) {
    return error(DecodeFault::too_large, offset, "chunk size in bytes", size + (at - offset), rod_data.size() - offset);
  }
  record.bytes = rod_data.subspan(at, size);
  for (at += size; at % kWordBytes != 0; ++at) {
    const auto padding = static_cast<std::uint64_t>(rod_data[at]);
    if (padding != 0) return error(DecodeFault::wrong_value, at, "padding of a chunk", padding, 0);
  }
  offset = at;
  return record;
}

void append_chunk_record(std::vector<std::byte>& rod_data, ChunkHeader header, std::span<const std::byte> bytes) {
  const std::size_t at = rod_data.size();
  rod_data.resize(at + chunk_record_bytes(bytes.size()));
  store_chunk_header(rod_data.data() + at, header, bytes.size());
  std::ranges::copy(bytes, rod_data.begin() + static_cast<std::ptrdiff_t>(at + chunk_header_bytes(bytes.size())));
}

}  // namespace rodeo::formats
