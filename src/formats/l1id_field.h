// The place of the L1 id in the chunks of a recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace rodeo::formats {

/// The field is little-endian.
struct L1IdField {
  std::uint32_t offset = 0;  ///< bytes from the start of the chunk
  std::uint32_t bits = 32;   ///< 32: ECR counter and 24 bits; less: that many low bits

  std::uint32_t mask() const { return bits >= 32 ? ~0U : (1U << bits) - 1; }
  std::uint32_t bytes() const { return (bits + 7) / 8; }
  bool in(std::span<const std::byte> chunk) const { return chunk.size() >= std::size_t{offset} + bytes(); }
  std::uint32_t read(std::span<const std::byte> chunk) const {
    std::uint32_t value = 0;
    std::memcpy(&value, chunk.data() + offset, bytes());
    return value & mask();
  }
};

}  // namespace rodeo::formats
