// Reading event files in place: the records, then block after block (docs/formats/eventstorage-file.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "formats/decode_error.h"
#include "formats/event_file_records.h"

namespace rodeo::storage {

/// One data block: an event, or whatever else a foreign writer stored.
struct EventBlock {
  std::uint32_t number = 0;                ///< as the separator says
  std::uint64_t offset = 0;                ///< of the separator in the file
  std::span<const std::byte> stored;       ///< the event, as it lies in the file
  std::span<const std::byte> checks = {};  ///< the record of header checks behind it in its block; mostly empty

  std::size_t bytes() const { return stored.size() + checks.size(); }  ///< of the block
};

/// Walks a file in memory, which must outlive it. Survives any bytes. One thread.
class EventFileReader {
 public:
  static formats::Decoded<EventFileReader> open(std::span<const std::byte> file);

  const formats::DecodedFileHeader& header() const { return header_; }

  /// The next block; nothing at the end record (see end()); an error, with its offset in the file, where the file is not as it
  /// should be, after which nothing follows.
  formats::Decoded<std::optional<EventBlock>> next();

  /// The end record, once next() came to it. An unclosed file has none: next() then gives an error at its end.
  const std::optional<formats::FileEnd>& end() const { return end_; }

  /// Where the next record starts; behind the end record once that was met.
  std::uint64_t position() const { return position_; }

  /// The same file has grown and is in memory again, here: what ended next() in an error may be there now.
  void go_on(std::span<const std::byte> file) {
    file_ = file;
    failed_ = false;
  }

  /// The block that lies at `offset`.
  EventBlock block(std::uint32_t number, std::uint64_t offset, std::size_t bytes) const;

  /// The event in a block: itself, or decompressed into `buffer` if the file compresses whole blocks. Empty if that fails.
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

/// No event is believed to be larger than this when a compressed block says so.
inline constexpr std::size_t kLargestEventBytes = std::size_t{1} << 30;

}  // namespace rodeo::storage
