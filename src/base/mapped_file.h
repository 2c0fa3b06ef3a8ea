// A file mapped for reading: recordings and event files are read in place.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"

namespace rodeo::base {

/// Owns a read-only mapping of a whole regular file. The file must not be made shorter while it is mapped (reading beyond its new
/// end is a bus error). Any thread may read.
class MappedFile {
 public:
  enum class Access { sequential, random };

  /// Fails with "file.open", "file.not_regular" (directory, device) or "file.map"; an empty file maps to an empty span.
  static Result<MappedFile> open(const std::string& path, Access access = Access::sequential);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace rodeo::base
