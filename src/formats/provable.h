// Payload that proves itself: every byte is a pure function of (seed, link, trigger, position), so that any process can check it
// without asking. Specified in docs/formats/provable-payload.md.
//
// Chunk layout (little-endian):
//   bytes 0..3   extended L1 id            bytes 4..5  BCID (12 bits)
//   byte  6      trigger type              byte  7     0xC5
//   bytes 8..    64-bit words word(i) = key + i * kStep; the last one is cut to the chunk's size
// With a trailing CRC (crc = true) the last four bytes are the CRC-32 (IEEE 802.3, as zlib's) of all before them.
// Narrow formats (l1id_bits 24, 16 or 8) send only that many low bits of the L1 id in bytes 0..3, the others are zero; everything else
// still belongs to the whole L1 id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "rodeo/ids.h"

namespace rodeo::formats {

/// The one trigger that an extended L1 id names, as every emulated source sends it.
struct ProvableTrigger {
  std::uint16_t bcid = 0;         ///< 0 to 3563
  std::uint8_t trigger_type = 0;  ///< 0 to 255
};

class Provable {
 public:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
  static constexpr std::uint64_t kKeyFactor = 0xd1342543de82ef95;  ///< of key()
  static constexpr std::uint64_t kMixFactor = 0xe9846af9b1a615d;   ///< of the mixing in it
  static constexpr std::size_t kHeaderBytes = 8;
  static constexpr std::uint8_t kMark = 0xc5;

  /// `l1id_bits` is 1 to 32; 32 sends the ECR counter too.
  explicit Provable(std::uint64_t seed, bool crc = false, std::uint32_t l1id_bits = 32)
      : seed_(seed), l1id_mask_(l1id_bits >= 32 ? ~std::uint32_t{0} : (std::uint32_t{1} << l1id_bits) - 1), crc_(crc) {}

  std::uint64_t seed() const { return seed_; }
  /// The bits of an L1 id that chunks carry.
  std::uint32_t l1id_mask() const { return l1id_mask_; }

  ProvableTrigger trigger(L1Id l1id) const {
    const std::uint64_t h = mix(seed_ ^ (std::uint64_t{l1id.value} << 16 | 0x7719));
    return {static_cast<std::uint16_t>((h >> 32) * 3564 >> 32), static_cast<std::uint8_t>(h)};
  }

  std::uint64_t key(std::uint32_t link_id, L1Id l1id) const {
    return mix(seed_ + (std::uint64_t{link_id} << 32 | l1id.value) * kKeyFactor);
  }

  /// Bytes 0..7 of every chunk of one trigger.
  std::uint64_t header(L1Id l1id) const {
    const ProvableTrigger of = trigger(l1id);
    return std::uint64_t{kMark} << 56 | std::uint64_t{of.trigger_type} << 48 | std::uint64_t{of.bcid} << 32 |
           (l1id.value & l1id_mask_);
  }

  /// Writes `size` bytes (8 or more) of header and words, no CRC: the inner loop of emulators.
  static void fill(std::byte* chunk, std::size_t size, std::uint64_t header, std::uint64_t key) {
    std::memcpy(chunk, &header, kHeaderBytes);
    std::size_t at = kHeaderBytes;
    for (; at + 8 <= size; at += 8, key += kStep) std::memcpy(chunk + at, &key, 8);
    if (at < size) std::memcpy(chunk + at, &key, size - at);
  }

  /// Writes a chunk of chunk.size() bytes. Sizes below 8 (12 with CRC) hold as much of the header as fits.
  void write(std::span<std::byte> chunk, std::uint32_t link_id, L1Id l1id) const;

  /// Recomputes the trailing CRC of a chunk that was changed; nothing without CRC.
  void seal(std::span<std::byte> chunk) const;

  /// True if the chunk is, byte for byte, what write() makes for this link and trigger.
  bool matches(std::span<const std::byte> chunk, std::uint32_t link_id, L1Id l1id) const {
    return matches(chunk, header(l1id), key(link_id, l1id));
  }

  /// The same with header() and key() computed before, for whoever checks all links of a trigger.
  bool matches(std::span<const std::byte> chunk, std::uint64_t header, std::uint64_t key) const {
    const std::size_t crc_bytes = crc_ && chunk.size() >= kHeaderBytes + 4 ? 4 : 0;
    const std::size_t body = chunk.size() - crc_bytes;
    const std::byte* const bytes = chunk.data();
    if (body < kHeaderBytes) return body == 0 || std::memcmp(bytes, &header, body) == 0;
    std::uint64_t difference = load(bytes) ^ header;
    std::size_t at = kHeaderBytes;
    for (; at + 8 <= body; at += 8, key += kStep) difference |= load(bytes + at) ^ key;
    if (difference != 0) return false;
    if (at < body && std::memcmp(bytes + at, &key, body - at) != 0) return false;
    return crc_bytes == 0 || crc_matches(chunk);
  }

 private:
  static std::uint64_t load(const std::byte* at) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    return word;
  }

  static bool crc_matches(std::span<const std::byte> chunk);

  static constexpr std::uint64_t mix(std::uint64_t x) {
    x ^= x >> 32;
    x *= kMixFactor;
    x ^= x >> 32;
    x *= kMixFactor;
    return x ^ x >> 28;
  }

  std::uint64_t seed_;
  std::uint32_t l1id_mask_;
  bool crc_;
};

}  // namespace rodeo::formats
