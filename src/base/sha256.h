// SHA-256 (FIPS 180-4): names a configuration or a library by what is in it.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace rodeo::base {

/// 64 lower-case hex digits.
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace rodeo::base
