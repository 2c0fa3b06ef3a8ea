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
  bool keep_index = true;         ///< beside the file
  std::uint32_t l1id_offset = 0;  ///< in the chunks of a recording of FELIX blocks: bytes; little-endian
  std::uint32_t l1id_bits = 32;
  /// Called now and then in long work, which it may end by throwing.
  std::function<void()> between = [] {};
};

/// Owned by one FileSet, which sees to it that one thread at a time calls. What has been handed out keeps the mapping, not this.
class DataFile {
 public:
  /// By what the file is. Throws FaultError: file.*, data.empty, .zeros, .unknown_kind, .header, formats.*_recording.
  static std::unique_ptr<DataFile> open(const std::string& path, const FileOptions& options);

  virtual ~DataFile() = default;

  virtual const char* kind() const = 0;

  /// Whether there is an event `i`; walks so far.
  virtual bool has(std::size_t i) = 0;
  /// Walks to the end. `random`: events will be asked for out of order; an index is worth keeping.
  virtual std::size_t count(bool random) = 0;

  /// Throws FaultError if it is damaged.
  virtual std::shared_ptr<EventParts> event(std::size_t i) = 0;
  /// The same into columns, which are as before if it is damaged.
  virtual void append(std::size_t i, std::uint64_t index, std::uint32_t file, Columns& columns) = 0;

  /// Events with this L1 id, by their numbers.
  virtual std::vector<std::size_t> find(std::uint32_t l1id) = 0;

  /// Once has() was false: what is wrong with the file as a whole. One that is still being written is not wrong.
  virtual std::optional<Fault> fault() const = 0;

  /// Looks whether the file has grown. Throws FaultError.
  virtual void grow() {}
  /// Nothing more will come.
  virtual bool closed() const { return true; }
  /// ... nor will another file of its sequence.
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
