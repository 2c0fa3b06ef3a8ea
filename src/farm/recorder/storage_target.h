// Copies closed files to their target, compares the checksum of each copy, and then removes the local file. After a kill the
// files themselves show what is left to do.
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

/// Copies a file into a directory under a temporary name, flushes it, compares the copy on disk with the source, and renames
/// it. An existing file of this name counts as the copy if it has the same bytes. Blocks. Errors: farm.target_differs,
/// file.write, file.open.
Result<void> copy_to_directory(const std::filesystem::path& file, const std::filesystem::path& directory);

/// Copies a file with two programs, and replaces {file} and {name} in their arguments. One program copies, the other prints
/// the SHA-256 of the copy as the first word of its output. Errors: farm.target_failed, farm.target_differs.
Result<void> copy_by_command(const std::filesystem::path& file, const TargetSettings& settings);

/// Returns the SHA-256 of a file on the disk, in hex digits. Error file.open.
Result<std::string> sha256_of_file(const std::filesystem::path& file);

/// A thread that stores the closed files of one run, including those of former lives of this recorder.
class StorageTarget {
 public:
  struct Status {
    std::uint64_t stored_files = 0;  ///< Files that are copied and confirmed.
    std::uint64_t stored_bytes = 0;
    std::uint64_t failures = 0;    ///< Number of failed attempts.
    std::uint64_t files_left = 0;  ///< Files that were not stored at the last check.
    std::string trouble;           ///< Reason why the last attempt failed; empty: it succeeded.
  };

  StorageTarget(TargetSettings settings, RunFiles files);
  ~StorageTarget();

  /// Call it when there may be a new file. Any thread may call it.
  void check_files();
  /// Call it when no more files come: the thread ends when all are stored, or after `linger`. Does not block. Any thread may
  /// call it.
  void end();
  /// Ends the thread after the copy that is under way.
  void give_up();
  bool ended() const;
  Status status() const;

 private:
  void run();
  Result<void> store(const std::filesystem::path& file);

  const TargetSettings settings_;
  const RunFiles files_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool check_ = true;
  bool ending_ = false;
  bool leaving_ = false;
  bool ended_ = false;
  std::uint64_t ending_since_ns_ = 0;
  Status status_;
  std::vector<std::filesystem::path> stored_;  // Stored files that are not removed here.
  std::thread thread_;
};

}  // namespace rodeo::farm
