// Adler-32 (for events and, beside a file, for the whole file) and CRC-32 (Rodeo's protection of whole files).
// Both have zlib's values; ISA-L computes them 3 and 10 times faster (15 and 66 GB/s against 4.4 and 7.1 on one core).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rodeo::formats {

inline constexpr std::uint32_t kAdler32Start = 1;
inline constexpr std::uint32_t kCrc32Start = 0;
inline constexpr std::uint16_t kCrc16Start = 0;

/// Continues a checksum over more bytes. Any thread.
std::uint32_t adler32(std::span<const std::byte> bytes, std::uint32_t sum = kAdler32Start);
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t sum = kCrc32Start);
/// CRC-16 of T10 DIF (polynomial 0x8bb7, most significant bit first): the checks of event headers.
std::uint16_t crc16(std::span<const std::byte> bytes, std::uint16_t sum = kCrc16Start);

/// The checksum of A followed by B, from the checksums of A and of B, each from the start value, and the length of B.
std::uint32_t adler32_of_both(std::uint32_t a, std::uint32_t b, std::size_t b_bytes);
std::uint32_t crc32_of_both(std::uint32_t a, std::uint32_t b, std::size_t b_bytes);

}  // namespace rodeo::formats
