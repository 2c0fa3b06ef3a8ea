// Event files that are made of the events of other event files: what is kept of the records, and files that are there whole or not at all.
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

/// What the new files say of their run as the old one does: run parameters, application, stream, project, lumi block, payload, and free strings
/// that the writer of the new file does not set itself.
EventFileSettings settings_like(const formats::DecodedFileHeader& header);

/// Where new files go.
struct DerivedTarget {
  std::filesystem::path directory;
  std::string name;  ///< files are called <name>._0001.data

  /// "out/merged" and "out/merged.data" are the files out/merged._0001.data and so on.
  static DerivedTarget of(const std::filesystem::path& output);
};

/// A sequence of such files. Unless keep() was called, its end removes what it wrote, and nothing else: the events are still where they came from. One
/// thread.
class DerivedFiles {
 public:
  /// Error file.exists if one of these files is there already; readout.cannot_write, readout.disk_full.
  static Result<DerivedFiles> create(const DerivedTarget& target, EventFileSettings settings);

  DerivedFiles(DerivedFiles&&) = default;
  DerivedFiles& operator=(DerivedFiles&&) = delete;
  ~DerivedFiles();

  /// Appends an event. Error file.write: the disk is full or fails.
  Result<void> append(std::span<const std::byte> event);

  /// Closes the files, which may stay: who writes several sequences closes all before one of them stays. Error file.write.
  Result<void> close();

  /// Closes the files, which stay. Error file.write, and then none is left.
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
