// Brings closed files to where they stay: copied, the copy's checksum compared, and only then removed here. What was under way when the process
// was killed is done again, for the files themselves say what is left to do.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "farm/recorder/read_back.h"
#include "farm/recorder/settings.h"

namespace rodeo::farm {

/// Copies a file into a directory under a name that nobody takes for the file, flushes it, compares what is on the disk with the source, and then
/// gives it its name. A file of this name that is there already counts as the copy if it has the same bytes. Blocks. Errors: farm.target_differs,
/// file.write, file.open.
Result<void> copy_to_directory(const std::filesystem::path& file, const std::filesystem::path& directory);

/// The same by two programs, which find {file} and {name} replaced in their arguments: one copies, the other prints the SHA-256 of the copy (the first
/// word of its output). Errors: farm.target_failed, farm.target_differs.
Result<void> copy_by_command(const std::filesystem::path& file, const TargetKeys& keys);

/// SHA-256 in hex digits, of what is on the disk. Error file.open.
Result<std::string> sha256_of_file(const std::filesystem::path& file);

/// A thread that looks for closed files of one run, those of former lives of this recorder included.
class StorageTarget {
 public:
  struct Status {
    std::uint64_t stored_files = 0;  ///< copied and confirmed
    std::uint64_t stored_bytes = 0;
    std::uint64_t failures = 0;    ///< tries that failed
    std::uint64_t files_left = 0;  ///< that are not stored yet, as of the last look
    std::string trouble;           ///< why the last try failed; empty: it did not
  };

  StorageTarget(TargetKeys keys, ReadBack files);
  ~StorageTarget();

  /// There may be a new file. Any thread.
  void look();
  /// No file comes any more: it ends when all are stored, or after `linger`. Does not wait. Any thread.
  void end();
  /// It ends with the copy that is being made.
  void give_up();
  bool ended() const;
  Status status() const;

 private:
  void run();
  Result<void> store(const std::filesystem::path& file);

  const TargetKeys keys_;
  const ReadBack files_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool look_ = true;
  bool ending_ = false;
  bool leaving_ = false;
  bool ended_ = false;
  std::uint64_t ending_since_ns_ = 0;
  Status status_;
  std::vector<std::filesystem::path> stored_;  // that stay here, for they are not removed
  std::thread thread_;
};

}  // namespace rodeo::farm
