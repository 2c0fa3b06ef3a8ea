// The lock file beside a socket: the process that holds the lock owns the name, and only it makes or removes the socket.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <expected>
#include <filesystem>

#include "base/fd_socket.h"

namespace rodeo::base {

/// The locked part of the file: the whole file with flock(), or bytes of it with an open file description lock. The two
/// kinds of locks ignore each other.
struct LockedPart {
  bool bytes = false;
  off_t first = 0;
  off_t count = 0;  ///< 0: to the end

  static constexpr LockedPart whole() { return {}; }
  static constexpr LockedPart byte(off_t which) { return {true, which, 1}; }
  static constexpr LockedPart all_bytes() { return {true, 0, 0}; }
};

/// An exclusive lock on the file that has the name now. Other processes remove files of dead owners under the same lock. A
/// lock on a file that lost its name protects nothing, and is never returned.
class LockFile {
 public:
  /// A cleanup holds the lock for a moment, an owner for its whole life: a lock held longer than this belongs to an owner.
  static constexpr std::chrono::milliseconds kCleaning{250};

  /// Makes the file (mode 0600) if it is not there, and waits up to `patience` for the lock. The error is an errno:
  /// EWOULDBLOCK if another process holds it.
  static std::expected<LockFile, int> acquire(const std::filesystem::path& path, LockedPart part,
                                              std::chrono::milliseconds patience = kCleaning);

  /// Removes the file and keeps the lock, so that no other process takes the name in between.
  void remove() const;

  bool made() const { return made_; }  ///< true if this object created the file
  const std::filesystem::path& path() const { return path_; }
  UniqueFd release() { return std::move(file_); }

 private:
  LockFile(std::filesystem::path path, UniqueFd file, bool made)
      : path_(std::move(path)), file_(std::move(file)), made_(made) {}

  std::filesystem::path path_;
  UniqueFd file_;
  bool made_ = false;
};

/// True if the name still refers to the descriptor's file.
bool is_named(int file, const std::filesystem::path& path);

}  // namespace rodeo::base
