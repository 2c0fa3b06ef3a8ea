// The chunk format of an imaginary calorimeter behind FULL-mode links. All numbers little-endian.
//
//   byte 0..3    marker 0xca10da7a
//   byte 4..7    extended L1 id: ECR counter in bits 31..24, L1 id below
//   byte 8..9    BCID
//   byte 10      trigger type
//   byte 11      zero
//   byte 12..15  payload size in bytes, a multiple of 4
//   then the payload, and in the last 4 bytes the CRC-32 (as in Ethernet) of all bytes before
#pragma once

#include <rodeo/plugin.h>
#include <rodeo/settings.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace calorimeter {

inline constexpr std::uint32_t kMarker = 0xca10da7a;
inline constexpr std::size_t kHeaderBytes = 16;
inline constexpr std::size_t kCrcBytes = 4;
inline constexpr std::uint32_t kOrbit = 3564;  ///< bunch crossings

inline std::uint32_t read32(std::span<const std::byte> chunk, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, chunk.data() + at, sizeof value);
  return value;
}

inline void write32(std::span<std::byte> chunk, std::size_t at, std::uint32_t value) {
  std::memcpy(chunk.data() + at, &value, sizeof value);
}

inline std::uint32_t crc32(std::span<const std::byte> bytes) {
  static constexpr auto kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? crc >> 1 ^ 0xedb88320U : crc >> 1;
      table[i] = crc;
    }
    return table;
  }();
  std::uint32_t crc = ~0U;
  for (const std::byte byte : bytes) crc = crc >> 8 ^ kTable[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xffU];
  return ~crc;
}

struct ExtractorSettings {
  std::uint32_t bcid_offset = 0;
};

inline const rodeo::Settings<ExtractorSettings> kExtractorSettings{
    rodeo::setting(&ExtractorSettings::bcid_offset, "bcid_offset",
                   "Bunch crossings by which the front end's BCID counter is ahead.", {.maximum = kOrbit - 1})};

/// Reads the headers of a whole run: the loop is here, so a run costs one virtual call for any number of chunks.
class Extractor final : public rodeo::TriggerExtractor {
 public:
  explicit Extractor(ExtractorSettings settings) : settings_(settings) {}

  rodeo::TriggerFields fields() const override {
    return {.l1id_bits = 24, .has_ecr = true, .has_bcid = true, .has_trigger_type = true};
  }

  std::uint32_t extract(const rodeo::ChunkRun& run, std::uint32_t first, std::uint32_t n, std::uint32_t* l1ids,
                        std::uint16_t* bcids) override {
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::span<const std::byte> chunk = run.chunk(first + i);
      if (chunk.size() < kHeaderBytes || read32(chunk, 0) != kMarker) return i;
      l1ids[i] = read32(chunk, 4);
      bcids[i] = static_cast<std::uint16_t>(((read32(chunk, 8) & 0xffffU) + kOrbit - settings_.bcid_offset) % kOrbit);
    }
    return n;
  }

  std::uint8_t trigger_type(std::span<const std::byte> chunk) override { return std::to_integer<std::uint8_t>(chunk[10]); }

 private:
  ExtractorSettings settings_;
};

inline bool check(std::span<const std::byte> chunk) {
  if (chunk.size() < kHeaderBytes + kCrcBytes || read32(chunk, 0) != kMarker) return false;
  const std::size_t body = chunk.size() - kCrcBytes;
  return read32(chunk, 12) == body - kHeaderBytes && crc32(chunk.first(body)) == read32(chunk, body);
}

/// Writes new ids for a replay; tests also make chunks with it.
inline void restamp(std::span<std::byte> chunk, const rodeo::TriggerInfo& trigger) {
  if (chunk.size() < kHeaderBytes + kCrcBytes) return;
  const std::size_t body = chunk.size() - kCrcBytes;
  write32(chunk, 0, kMarker);
  write32(chunk, 4, trigger.l1id);
  write32(chunk, 8, trigger.bcid | std::uint32_t{trigger.trigger_type} << 16);
  write32(chunk, 12, static_cast<std::uint32_t>(body - kHeaderBytes));
  write32(chunk, body, crc32(chunk.first(body)));
}

}  // namespace calorimeter
