// One event file from its first event to its last, for whoever makes something new of its events: whole files only, judged as they are read.
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

/// An event where it lies. It keeps its file mapped.
struct WalkedEvent {
  std::shared_ptr<const base::MappedFile> file;
  std::uint32_t number = 0;           ///< of its data block
  std::uint64_t offset = 0;           ///< of the event in the file
  std::span<const std::byte> stored;  ///< as it lies there
  bool compressed_block = false;      ///< `stored` is the whole event as a zlib stream
  formats::EventFields fields = {};   ///< from its header
  bool whole = true;                  ///< it decodes and its checksums hold
  std::string damage = {};            ///< else what is wrong with it

  /// Its bytes: where they lie, or decompressed into `buffer`.
  std::span<const std::byte> bytes(std::vector<std::byte>& buffer) const;
};

/// Reads a closed event file once, from start to end. What the CRC-32 over the whole file says is known only then: who writes something new keeps
/// it only after next() has come to the end without an error. One thread.
class EventFileWalk {
 public:
  /// `check` events: that they are whole. Errors of MappedFile, data.empty and so on for what is no event file, data.header, data.not_closed.
  static Result<EventFileWalk> open(const std::string& path, bool check = true);

  const std::string& path() const { return path_; }
  const formats::DecodedFileHeader& header() const { return header_; }
  std::uint64_t bytes() const { return mapped_->bytes().size(); }

  /// The next event; nothing at the end, if all of the file is what was written. Error data.damaged: it cannot be read on, or is not; file.shrunk.
  Result<std::optional<WalkedEvent>> next();

  /// Bytes of records and events up to where next() stands.
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
