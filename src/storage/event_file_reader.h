// Reading event files in place: the records, then block after block (docs/reference/formats/eventstorage-file.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "formats/decode_error.h"
#include "formats/event_file_records.h"

namespace rodeo::storage {

/// One data block: an event, or other data of a foreign writer.
struct EventBlock {
  std::uint32_t number = 0;                ///< number in the separator
  std::uint64_t offset = 0;                ///< place of the separator in the file
  std::span<const std::byte> stored;       ///< the stored event
  std::span<const std::byte> checks = {};  ///< the record of header checks behind the event in its block; usually empty

  std::size_t bytes() const { return stored.size() + checks.size(); }  ///< size of the block
};

/// Reads a file in memory, which must outlive it. Accepts any bytes. One thread.
class EventFileReader {
 public:
  static formats::Decoded<EventFileReader> open(std::span<const std::byte> file);

  const formats::DecodedFileHeader& header() const { return header_; }

  /// The next block; nothing at the end record (see end()). After an error, which names its offset in the file,
  /// nothing follows.
  formats::Decoded<std::optional<EventBlock>> next();

  /// The end record, once next() has reached it. An unclosed file has none: next() then returns an error at its end.
  const std::optional<formats::FileEnd>& end() const { return end_; }

  /// Offset of the next record; after the end record, the offset behind it.
  std::uint64_t position() const { return position_; }

  /// Continues with the same file after it has grown, at a new place in memory: next() may succeed where it failed.
  void go_on(std::span<const std::byte> file) {
    file_ = file;
    failed_ = false;
  }

  /// The block at `offset`.
  EventBlock block(std::uint32_t number, std::uint64_t offset, std::size_t bytes) const;

  /// The event of a block: in place, or decompressed into `buffer` if the file compresses whole blocks. Empty if that fails.
  std::span<const std::byte> event(const EventBlock& block, std::vector<std::byte>& buffer) const;

 private:
  EventFileReader(std::span<const std::byte> file, formats::DecodedFileHeader header)
      : file_(file), header_(std::move(header)), position_(header_.size_bytes) {}

  std::span<const std::byte> file_;
  formats::DecodedFileHeader header_;
  std::uint64_t position_;
  std::optional<formats::FileEnd> end_;
  bool failed_ = false;
};

/// A compressed block that announces a larger event is refused.
inline constexpr std::size_t kLargestEventBytes = std::size_t{1} << 30;

}  // namespace rodeo::storage
