#include "formats/decode_error.h"

#include <fmt/format.h>

namespace rodeo::formats {

std::string DecodeError::what() const {
  switch (fault) {
    case DecodeFault::truncated: return fmt::format("{} needs {} bytes, {} are there", field, expected, found);
    case DecodeFault::wrong_value: return fmt::format("{} is {:#x}, not {:#x}", field, found, expected);
    case DecodeFault::too_large: return fmt::format("{} is {}, at most {} is possible", field, found, expected);
    case DecodeFault::too_small: return fmt::format("{} is {}, at least {} is needed", field, found, expected);
    case DecodeFault::unknown: return fmt::format("{} has the unknown value {:#x}", field, found);
    case DecodeFault::checksum: return fmt::format("{} is {:#010x}, the data give {:#010x}", field, expected, found);
    case DecodeFault::damaged: return fmt::format("{} does not decompress", field);
  }
  return field;
}

std::string DecodeError::message() const { return fmt::format("byte {}: {}", offset, what()); }

}  // namespace rodeo::formats
