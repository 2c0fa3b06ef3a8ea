#include "storage/event_file_reader.h"

#include "base/error.h"
#include "formats/header_checks.h"
#include "formats/words.h"
#include "formats/zlib_stream.h"

namespace rodeo::storage {

using namespace formats;

Decoded<EventFileReader> EventFileReader::open(std::span<const std::byte> file) {
  return EventFileReader(file, RODEO_TRY(decode_file_header(file)));
}

Decoded<std::optional<EventBlock>> EventFileReader::next() {
  if (end_ || failed_) return std::nullopt;
  const std::span<const std::byte> rest = file_.subspan(position_);
  if (rest.size() >= kWordBytes && load_word(rest.data()) == kFileEndMarker) {
    const Decoded<FileEnd> end = decode_file_end(rest);
    if (!end) {
      failed_ = true;
      return std::unexpected(end.error().from(position_));
    }
    end_ = *end;
    position_ += kFileEndBytes;
    return std::nullopt;
  }
  const Decoded<Separator> separator = decode_separator(rest);
  if (!separator) {
    failed_ = true;
    return std::unexpected(separator.error().from(position_));
  }
  const std::uint64_t at = position_;
  position_ += kSeparatorBytes + separator->block_bytes;
  return block(separator->block_number, at, separator->block_bytes);
}

EventBlock EventFileReader::block(std::uint32_t number, std::uint64_t offset, std::size_t bytes) const {
  const auto all = file_.subspan(offset + kSeparatorBytes, bytes);
  if (header_.compressed_blocks()) return {.number = number, .offset = offset, .stored = all};
  const BlockParts parts = split_block(all);
  return {.number = number, .offset = offset, .stored = parts.event, .checks = parts.checks};
}

std::span<const std::byte> EventFileReader::event(const EventBlock& block, std::vector<std::byte>& buffer) const {
  if (!header_.compressed_blocks()) return block.stored;
  buffer = zlib_decompress_all(block.stored, kLargestEventBytes);
  return buffer;
}

}  // namespace rodeo::storage
