// SHA-256 (FIPS 180-4): names a configuration or a library by what is in it; with a key (RFC 2104) it proves that somebody knows a secret.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace rodeo::base {

using Sha256 = std::array<std::byte, 32>;

Sha256 sha256(std::span<const std::byte> bytes);

/// 64 lower-case hex digits.
std::string sha256_hex(std::span<const std::byte> bytes);

/// HMAC. Of any key; compare it with what a stranger sent in constant time.
Sha256 hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);

}  // namespace rodeo::base
