// How far long work is, told by whoever does it to whoever shows it.
#pragma once

#include <cstdint>
#include <functional>

namespace rodeo::storage {

/// Called with the bytes that were worked through since the last call, about once a megabyte; by any thread, by several at once. May be empty.
using Progress = std::function<void(std::uint64_t bytes)>;

inline void tell(const Progress& progress, std::uint64_t bytes) {
  if (progress) progress(bytes);
}

}  // namespace rodeo::storage
