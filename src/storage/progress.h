// The progress of long work, from the working code to the display.
#pragma once

#include <cstdint>
#include <functional>

namespace rodeo::storage {

/// Called with the number of bytes processed since the last call, about once a megabyte; by any thread, by several at once.
/// May be empty.
using Progress = std::function<void(std::uint64_t bytes)>;

inline void add_progress(const Progress& progress, std::uint64_t bytes) {
  if (progress) progress(bytes);
}

}  // namespace rodeo::storage
