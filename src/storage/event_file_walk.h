// Reads one event file from first to last event, for code that makes new files of the events. Accepts complete files only,
// and checks them while reading.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/event_check.h"
#include "formats/full_event.h"
#include "storage/event_file_reader.h"
#include "storage/file_verify.h"

namespace rodeo::storage {

/// An event in place. It keeps its file mapped.
struct WalkedEvent {
  std::shared_ptr<const base::MappedFile> file;
  std::uint32_t number = 0;           ///< number of the event's data block
  std::uint64_t offset = 0;           ///< place of the event in the file
  std::span<const std::byte> stored;  ///< the stored bytes of the event
  bool compressed_block = false;      ///< `stored` is the whole event as a zlib stream
  formats::EventFields fields = {};   ///< fields of the event's header
  bool whole = true;                  ///< the event decodes, and its checksums are right
  std::string damage = {};            ///< the fault of an event that is not whole

  /// The bytes of the event: in place, or decompressed into `buffer`.
  std::span<const std::byte> bytes(std::vector<std::byte>& buffer) const;
};

/// Reads a closed event file once, from start to end. The CRC-32 over the whole file is known only at the end: keep newly
/// written files only after next() has returned the end without an error. One thread.
class EventFileWalk {
 public:
  /// `check`: check that events are whole. Errors of MappedFile, data.empty etc. for other files, data.header,
  /// data.not_closed.
  static Result<EventFileWalk> open(const std::string& path, bool check = true);

  const std::string& path() const { return path_; }
  const formats::DecodedFileHeader& header() const { return header_; }
  std::uint64_t bytes() const { return mapped_->bytes().size(); }

  /// The next event; nothing at the end, if the checks of the file are right. Errors: data.damaged (the file cannot be read
  /// further, or its checks fail), file.shrunk.
  Result<std::optional<WalkedEvent>> next();

  /// Bytes of records and events that next() has read.
  std::uint64_t position() const { return reader_.position(); }

 private:
  EventFileWalk(std::string path, std::shared_ptr<const base::MappedFile> mapped, EventFileReader reader, bool check);

  std::unexpected<Error> damaged(std::string what) const;
  void digest_up_to(std::uint64_t position);
  void release_up_to(std::uint64_t position);

  std::string path_;
  std::shared_ptr<const base::MappedFile> mapped_;
  EventFileReader reader_;
  formats::DecodedFileHeader header_;
  std::optional<std::uint32_t> stored_crc_;
  std::uint32_t crc_ = 0;
  std::uint64_t digested_ = 0;
  std::uint64_t released_ = 0;
  bool check_;
  bool ended_ = false;
  formats::EventChecker checker_{formats::EventExpectations{}};
  std::vector<std::byte> buffer_;
};

}  // namespace rodeo::storage
