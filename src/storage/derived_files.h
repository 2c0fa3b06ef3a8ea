// Event files made from the events of other event files: the records they keep, and files that either exist completely or do
// not exist.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "rodeo/consumer.h"
#include "storage/event_file_sequence.h"

namespace rodeo::storage {

/// The records that new files copy from the old one: run parameters, application, stream, project, lumi block, payload, and
/// free strings that the writer of the new file does not set itself.
EventFileSettings settings_like(const formats::DecodedFileHeader& header);

/// The place and name of new files.
struct DerivedTarget {
  std::filesystem::path directory;
  std::string name;  ///< files are called <name>._0001.data

  /// Makes a target from the path that a user gave: "out/merged" and "out/merged.data" are the files out/merged._0001.data
  /// and so on.
  static DerivedTarget of(const std::filesystem::path& output);
};

/// A sequence of derived files. Without keep(), the destructor removes the files that this object wrote, and no others: the
/// source files still have the events. One thread.
class DerivedFiles {
 public:
  /// Error file.exists if one of these files exists; readout.cannot_write, readout.disk_full.
  static Result<DerivedFiles> create(const DerivedTarget& target, EventFileSettings settings);

  DerivedFiles(DerivedFiles&&) = default;
  DerivedFiles& operator=(DerivedFiles&&) = delete;
  ~DerivedFiles();

  /// Appends an event. Error file.write: the disk is full or fails.
  Result<void> append(std::span<const std::byte> event);

  /// Closes the files without keeping them: a writer of several sequences closes all before it keeps any. Error file.write.
  Result<void> close();

  /// Closes and keeps the files. Error file.write; then all files are removed.
  Result<std::vector<FragmentConsumer::File>> keep();

  std::uint64_t events() const { return events_; }

 private:
  DerivedFiles(DerivedTarget target, std::unique_ptr<EventFileSequence> sequence)
      : target_(std::move(target)), sequence_(std::move(sequence)) {}
  void remove_all();

  DerivedTarget target_;
  std::unique_ptr<EventFileSequence> sequence_;
  std::uint64_t events_ = 0;
};

}  // namespace rodeo::storage
