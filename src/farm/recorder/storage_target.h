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

/// The same with two programs; {file} and {name} in their arguments are replaced. One copies, the other prints the SHA-256
/// of the copy as the first word of its output. Errors: farm.target_failed, farm.target_differs.
Result<void> copy_by_command(const std::filesystem::path& file, const TargetKeys& keys);

/// SHA-256 of a file on the disk, in hex digits. Error file.open.
Result<std::string> sha256_of_file(const std::filesystem::path& file);

/// A thread that stores the closed files of one run, also those of former lives of this recorder.
class StorageTarget {
 public:
  struct Status {
    std::uint64_t stored_files = 0;  ///< Copied and confirmed.
    std::uint64_t stored_bytes = 0;
    std::uint64_t failures = 0;    ///< Tries that failed.
    std::uint64_t files_left = 0;  ///< Not stored yet, as of the last look.
    std::string trouble;           ///< Why the last try failed; empty: it succeeded.
  };

  StorageTarget(TargetKeys keys, ReadBack files);
  ~StorageTarget();

  /// There may be a new file. Any thread.
  void look();
  /// No more files come: the thread ends when all are stored, or after `linger`. Does not block. Any thread.
  void end();
  /// The thread ends after the copy that is under way.
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
  std::vector<std::filesystem::path> stored_;  // Files that stay here because they are not removed.
  std::thread thread_;
};

}  // namespace rodeo::farm
