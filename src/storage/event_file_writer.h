// Event files on disk: the plain synchronous writer for tools and tests, and the closing step that every writer shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/file_marks.h"
#include "rodeo/consumer.h"
#include "storage/event_file_encoder.h"

namespace rodeo::storage {

/// Writes a file from its first byte to its last and flushes it to the disk. Error "file.write", and then there is none.
Result<void> write_file(const std::string& path, std::span<const std::byte> bytes);

/// Renames, never over an existing file: error "file.exists". File systems that cannot do it in one step get a check before.
Result<void> rename_new(const std::string& from, const std::string& to);

/// Closes a file for good: writes the CRC digits, flushes file and directory to the disk, renames `writing` to `closed` (never
/// over an existing file). All bytes are in the file already. Blocks. Errors "file.write", "file.exists".
Result<void> seal_event_file(const std::string& writing, const std::string& closed, std::size_t crc_offset,
                             std::uint32_t crc);

using ClosedFile = FragmentConsumer::File;

/// Writes events to a sequence of files, synchronously. One thread.
class EventFileWriter {
 public:
  /// `clock` says the time that stands in the records.
  EventFileWriter(
      std::string directory, EventFileSettings settings,
      std::function<std::time_t()> clock = [] { return std::time(nullptr); });
  ~EventFileWriter();  ///< a file that is still open stays behind as .writing
  EventFileWriter(const EventFileWriter&) = delete;
  EventFileWriter& operator=(const EventFileWriter&) = delete;

  /// Writes one event, to a new file if the current one is full. Errors "file.write", "file.exists".
  Result<void> add(std::span<const std::byte> event);

  /// Ends the sequence; without an event there is one file without events.
  Result<void> close();

  /// Removes the file that is open, or that could not be closed: for a writer whose events are still elsewhere.
  void discard();

  const std::vector<ClosedFile>& files() const { return files_; }

 private:
  Result<void> open_file();
  Result<void> close_file(bool last);
  Result<void> put(std::span<const std::byte> bytes);
  std::string path_of(const std::string& name) const { return directory_ + "/" + name; }

  std::string directory_;
  EventFileEncoder encoder_;
  std::function<std::time_t()> clock_;
  formats::FileDigest digest_;
  std::vector<ClosedFile> files_;
  int fd_ = -1;
  bool unsealed_ = false;  // there is a file of ours that ends in .writing
};

}  // namespace rodeo::storage
