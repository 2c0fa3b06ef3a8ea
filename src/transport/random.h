// Random numbers that a peer cannot guess.
#pragma once

#include <sys/random.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace rodeo::transport {

/// Throws SetupError if the kernel has none.
template <std::size_t N>
std::array<std::byte, N> random_bytes() {
  std::array<std::byte, N> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw SetupError({"transport.random", "the kernel gives no random bytes"});
  return bytes;
}

inline std::uint64_t random_number() { return std::bit_cast<std::uint64_t>(random_bytes<8>()); }

}  // namespace rodeo::transport
