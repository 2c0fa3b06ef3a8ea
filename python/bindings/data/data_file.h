// One data file as a sequence of events: an event file, a recording of FELIX blocks, or a dump of RDH pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "columns.h"
#include "event_parts.h"
#include "fault.h"
#include "formats/event_file_records.h"

namespace rodeo::python::data {

struct FileOptions {
  bool checksums = true;
  bool keep_index = true;         ///< keep an index next to the file
  std::uint32_t l1id_offset = 0;  ///< byte offset of the L1 id in chunks of FELIX recordings; the id is little-endian
  std::uint32_t l1id_bits = 32;
  /// Called from time to time during long work; it may throw to end the work.
  std::function<void()> between = [] {};
};

/// Owned by one FileSet, which lets one thread call at a time. Returned objects keep the mapping alive, but not this object.
class DataFile {
 public:
  /// Opens a file by its kind. Throws FaultError: file.*, data.empty, .zeros, .unknown_kind, .header, formats.*_recording.
  static std::unique_ptr<DataFile> open(const std::string& path, const FileOptions& options);

  virtual ~DataFile() = default;

  virtual const char* kind() const = 0;

  /// Whether event `i` exists; walks up to it.
  virtual bool has(std::size_t i) = 0;
  /// Walks to the end and returns the number of events. `random`: events will be read out of order, so an index is useful.
  virtual std::size_t count(bool random) = 0;

  /// Throws FaultError if the event is damaged.
  virtual std::shared_ptr<EventParts> event(std::size_t i) = 0;
  /// Appends the event to columns; if it is damaged, the columns stay unchanged.
  virtual void append(std::size_t i, std::uint64_t index, std::uint32_t file, Columns& columns) = 0;

  /// The numbers of events with this L1 id.
  virtual std::vector<std::size_t> find(std::uint32_t l1id) = 0;

  /// After has() returned false: the fault of the file as a whole. A file that is still being written has none.
  virtual std::optional<Fault> fault() const = 0;

  /// Checks whether the file has grown. Throws FaultError.
  virtual void grow() {}
  /// True if no more events will come.
  virtual bool closed() const { return true; }
  /// True if no more events and no further file of its sequence will come.
  virtual bool last_of_sequence() const { return true; }

  virtual const formats::DecodedFileHeader* header() const { return nullptr; }
  virtual const formats::FileEnd* end() const { return nullptr; }

 protected:
  DataFile(std::string path, std::shared_ptr<const base::MappedFile> mapped)
      : path_(std::move(path)), mapped_(std::move(mapped)) {}

  /// Throws FaultError if a page of the file could not be read.
  void check_pages() const;

  std::string path_;
  std::shared_ptr<const base::MappedFile> mapped_;
};

std::unique_ptr<DataFile> open_event_file(std::string path, std::shared_ptr<const base::MappedFile> mapped,
                                          const FileOptions& options);
std::unique_ptr<DataFile> open_block_recording(const std::string& path, std::shared_ptr<const base::MappedFile> mapped,
                                               const FileOptions& options);
std::unique_ptr<DataFile> open_page_dump(const std::string& path, std::shared_ptr<const base::MappedFile> mapped,
                                         const FileOptions& options);

}  // namespace rodeo::python::data
