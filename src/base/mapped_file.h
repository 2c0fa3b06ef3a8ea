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
/// Whoever cuts a mapped file short takes pages away that are being read; so does a disk that fails. Such a read does not end the
/// process (SIGBUS): it gives zeros, here and in the rest of the file, and check() says so from then on. Readers call it at their end,
/// or now and then, and throw away what they read. The handler is installed with the first file; faults elsewhere go to the one
/// that was there.
class MappedFile {
 public:
  enum class Access { sequential, random };

  /// Fails with "file.open", "file.not_regular" (directory, device, pipe; none of them is waited for) or "file.map"; an empty file
  /// maps to an empty span.
  static Result<MappedFile> open(const std::string& path, Access access = Access::sequential);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept { swap(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

  /// What lies before `offset` will hardly be read again: its memory is given back, and read from the file anew by whoever does. Keeps a walk through a
  /// large file small. Any thread.
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
  int guard_ = -1;  ///< place in the table of the handler; -1: empty file
};

}  // namespace rodeo::base
