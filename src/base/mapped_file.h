// A file mapped for reading: recordings and event files are read in place.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"

namespace rodeo::base {

/// Owns a read-only mapping of a whole regular file. Any thread may read.
///
/// Pages of a mapped file vanish if the file is cut short or the disk fails. A read of them does not end the process
/// (SIGBUS): it gives zeros, there and in the rest of the file, and check() returns an error from then on. Readers call
/// check() at their end, or from time to time, and on an error discard what they have read. The handler is installed with
/// the first file; faults elsewhere go to the previous handler.
class MappedFile {
 public:
  enum class Access { sequential, random };

  /// Fails with "file.open", "file.not_regular" (directory, device, pipe; without waiting for it) or "file.map"; an empty
  /// file maps to an empty span.
  static Result<MappedFile> open(const std::string& path, Access access = Access::sequential);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept { swap(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

  /// Releases the memory of the bytes before `offset`, which are unlikely to be read again; a later read loads them from the
  /// file. So a walk through a large file needs little memory. Any thread.
  void release_up_to(std::size_t offset) const;

  /// Error "file.shrunk" if a page could not be read since open(). Any thread.
  Result<void> check() const;

 private:
  void swap(MappedFile& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(path_, other.path_);
    std::swap(guard_, other.guard_);
  }

  std::span<const std::byte> bytes_;
  std::string path_;
  int guard_ = -1;  ///< index in the handler's table; -1: empty file
};

}  // namespace rodeo::base
