// The chunk format of an imaginary muon detector behind GBT links. All numbers little-endian.
//
//   byte 0..1   low 16 bits of the L1 id
//   byte 2..3   BCID (12 bits), then 0b0101 as a marker
//   byte 4..    hits, 4 bytes each
//   last 2      CRC-16 (polynomial 0x1021, start 0xffff) of all bytes before
#pragma once

#include <rodeo/plugin.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace muon {

inline constexpr std::size_t kHeaderBytes = 4;
inline constexpr std::size_t kCrcBytes = 2;
inline constexpr std::uint16_t kMarker = 0x5000;

inline std::uint16_t read16(std::span<const std::byte> chunk, std::size_t at) {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(chunk[at]) | std::to_integer<unsigned>(chunk[at + 1]) << 8);
}

inline void write16(std::span<std::byte> chunk, std::size_t at, std::uint16_t value) {
  chunk[at] = static_cast<std::byte>(value);
  chunk[at + 1] = static_cast<std::byte>(value >> 8);
}

inline std::uint16_t crc16(std::span<const std::byte> bytes) {
  static constexpr auto kTable = [] {
    std::array<std::uint16_t, 256> table{};
    for (unsigned i = 0; i < 256; ++i) {
      unsigned crc = i << 8;
      for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000U) != 0 ? crc << 1 ^ 0x1021U : crc << 1;
      table[i] = static_cast<std::uint16_t>(crc);
    }
    return table;
  }();
  std::uint16_t crc = 0xffff;
  for (const std::byte byte : bytes) {
    crc = static_cast<std::uint16_t>(crc << 8 ^ kTable[(crc >> 8 ^ std::to_integer<unsigned>(byte)) & 0xffU]);
  }
  return crc;
}

/// Checks the length first: a chunk that is too short for its header is malformed.
inline rodeo::TriggerInfo extract(std::span<const std::byte> chunk) {
  if (chunk.size() < kHeaderBytes) return {.valid = false};
  const std::uint16_t word = read16(chunk, 2);
  if ((word & 0xf000U) != kMarker) return {.valid = false};
  return {.l1id = read16(chunk, 0), .bcid = static_cast<std::uint16_t>(word & 0xfffU)};
}

inline bool check(std::span<const std::byte> chunk) {
  if (chunk.size() < kHeaderBytes + kCrcBytes) return false;
  const std::size_t body = chunk.size() - kCrcBytes;
  return crc16(chunk.first(body)) == read16(chunk, body);
}

/// Writes new ids for a replay.
inline void restamp(std::span<std::byte> chunk, const rodeo::TriggerInfo& trigger) {
  if (chunk.size() < kHeaderBytes + kCrcBytes) return;
  write16(chunk, 0, static_cast<std::uint16_t>(trigger.l1id));
  write16(chunk, 2, static_cast<std::uint16_t>((trigger.bcid & 0xfffU) | kMarker));
  const std::size_t body = chunk.size() - kCrcBytes;
  write16(chunk, body, crc16(chunk.first(body)));
}

}  // namespace muon
