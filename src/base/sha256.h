// SHA-256 (FIPS 180-4): identifies a configuration or a library by its contents; with a key (RFC 2104) proves knowledge of a
// secret.
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

/// HMAC with a key of any length. Compare it with received bytes in constant time.
Sha256 hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);

}  // namespace rodeo::base
