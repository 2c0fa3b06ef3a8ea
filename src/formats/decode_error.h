// The error of a decoder of events and event files: place, field, found and expected value.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

namespace rodeo::formats {

enum class DecodeFault : std::uint8_t {
  truncated,    ///< the bytes end before the field does; found = bytes there, expected = bytes needed
  wrong_value,  ///< found is not the only value that the format allows here
  too_large,    ///< found is above expected, the largest value that fits
  too_small,    ///< found is below expected, the smallest value that fits
  unknown,      ///< found is not among the values that the format allows here
  checksum,     ///< found is computed, expected is stored
  damaged,      ///< a compressed stream does not decompress
};

struct DecodeError {
  DecodeFault fault = DecodeFault::damaged;
  std::uint64_t offset = 0;  ///< bytes from the start of the decoded bytes
  const char* field = "";    ///< static text
  std::uint64_t found = 0;
  std::uint64_t expected = 0;

  /// The error with its offset counted from `base` bytes earlier.
  DecodeError from(std::uint64_t base) const {
    DecodeError moved = *this;
    moved.offset += base;
    return moved;
  }

  /// "byte 36: ROD header size is 0x8, not 0x9"
  std::string message() const;

  /// message() without the offset: "ROD header size is 0x8, not 0x9".
  std::string what() const;

  bool operator==(const DecodeError&) const = default;
};

template <typename T>
using Decoded = std::expected<T, DecodeError>;

/// The error return of a decoder; `offset` in bytes.
inline std::unexpected<DecodeError> decode_error(DecodeFault fault, std::uint64_t offset, const char* field,
                                                 std::uint64_t found, std::uint64_t expected = 0) {
  return std::unexpected(DecodeError{fault, offset, field, found, expected});
}
/// decode_error() for a 32-bit word; `word` is its index.
inline std::unexpected<DecodeError> word_error(DecodeFault fault, std::uint64_t word, const char* field, std::uint64_t found,
                                               std::uint64_t expected = 0) {
  return decode_error(fault, 4 * word, field, found, expected);
}

}  // namespace rodeo::formats
