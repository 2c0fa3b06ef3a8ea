// Provable payload: every byte is a pure function of (seed, link, trigger, size, position), so that any process can check it
// without other information. Specified in docs/reference/formats/provable-payload.md.
//
// Chunk layout (little-endian):
//   bytes 0..3   extended L1 id            bytes 4..5  BCID (12 bits)
// byte  6      trigger type              byte  7     mark: 0xC6, or 0xD0 + size if the size is below 16
//   bytes 8..15  key + size of the chunk in bytes
// bytes 16..   64-bit words word(i) = key + i * kStep, i from 1; the last one is cut to the chunk's size
// A chunk declares its own size, so that the beginning of a longer one does not match. Chunks of earlier versions (mark
// 0xC5) do not declare their size: word 0 is the key alone. They still match. With a trailing CRC (crc = true) the last four
// bytes are the CRC-32 (IEEE 802.3, as zlib's) of all bytes before them. Narrow formats (l1id_bits 24, 16 or 8) send only
// that many low bits of the L1 id in bytes 0..3, the others are zero; all other bytes still depend on the whole L1 id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "rodeo/ids.h"

namespace rodeo::formats {

/// The trigger that belongs to an extended L1 id, the same for every emulated source.
struct ProvableTrigger {
  std::uint16_t bcid = 0;         ///< 0 to 3563
  std::uint8_t trigger_type = 0;  ///< 0 to 255
};

class Provable {
 public:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
  static constexpr std::uint64_t kKeyFactor = 0xd1342543de82ef95;  ///< factor in key()
  static constexpr std::uint64_t kMixFactor = 0xe9846af9b1a615d;   ///< factor in the mixing inside key()
  static constexpr std::size_t kHeaderBytes = 8;
  static constexpr std::uint8_t kMark = 0xc6;
  static constexpr std::uint8_t kShortMark = 0xd0;  ///< added to the size, for chunks that end before kDeclaredBytes
  /// Mark of earlier versions, whose chunks do not declare their size.
  static constexpr std::uint8_t kUndeclaredMark = 0xc5;
  static constexpr std::size_t kDeclaredBytes = 16;  ///< header and the word with the size

  /// `l1id_bits` is 1 to 32; 32 sends the ECR counter too.
  explicit Provable(std::uint64_t seed, bool crc = false, std::uint32_t l1id_bits = 32)
      : seed_(seed), l1id_mask_(l1id_bits >= 32 ? ~std::uint32_t{0} : (std::uint32_t{1} << l1id_bits) - 1), crc_(crc) {}

  /// True for byte 7 of a chunk of this or an earlier version.
  static constexpr bool is_mark(std::byte byte) {
    const auto mark = static_cast<std::uint8_t>(byte);
    return mark == kMark || mark == kUndeclaredMark ||
           (mark >= kShortMark + kHeaderBytes && mark < kShortMark + kDeclaredBytes);
  }

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

  /// Bytes 0..7 of every chunk of one trigger with at least kDeclaredBytes; of_size() converts them for shorter chunks.
  std::uint64_t header(L1Id l1id) const {
    const ProvableTrigger of = trigger(l1id);
    return std::uint64_t{kMark} << 56 | std::uint64_t{of.trigger_type} << 48 | std::uint64_t{of.bcid} << 32 |
           (l1id.value & l1id_mask_);
  }

  /// The header of a chunk of `size` bytes.
  static constexpr std::uint64_t of_size(std::uint64_t header, std::size_t size) {
    return size < kDeclaredBytes ? with_mark(header, static_cast<std::uint8_t>(kShortMark + size)) : header;
  }

  /// Writes the first `size` bytes (8 or more) of a chunk of `whole` bytes: header and words, no CRC. The inner loop of
  /// emulators.
  static void fill(std::byte* chunk, std::size_t size, std::uint64_t header, std::uint64_t key, std::size_t whole) {
    header = of_size(header, whole);
    std::memcpy(chunk, &header, kHeaderBytes);
    std::uint64_t word = key + whole;
    std::size_t at = kHeaderBytes;
    for (; at + 8 <= size; at += 8) {
      std::memcpy(chunk + at, &word, 8);
      word = key += kStep;
    }
    if (at < size) std::memcpy(chunk + at, &word, size - at);
  }
  /// A whole chunk.
  static void fill(std::byte* chunk, std::size_t size, std::uint64_t header, std::uint64_t key) {
    fill(chunk, size, header, key, size);
  }

  /// Writes a chunk of chunk.size() bytes. Sizes below 8 (12 with CRC) contain as much of the header as fits.
  void write(std::span<std::byte> chunk, std::uint32_t link_id, L1Id l1id) const;

  /// Recomputes the trailing CRC of a changed chunk; does nothing without CRC.
  void seal(std::span<std::byte> chunk) const;

  /// True if the chunk equals, in size and every byte, the output of write() for this link and trigger. A chunk of fewer
  /// than 8 bytes has no mark and never matches.
  bool matches(std::span<const std::byte> chunk, std::uint32_t link_id, L1Id l1id) const {
    return matches(chunk, header(l1id), key(link_id, l1id));
  }

  /// matches() with precomputed header() and key(), for checking all links of a trigger.
  bool matches(std::span<const std::byte> chunk, std::uint64_t header, std::uint64_t key) const {
    if (chunk.size() < kHeaderBytes) return false;
    const std::size_t crc_bytes = crc_ && chunk.size() >= kHeaderBytes + 4 ? 4 : 0;
    const std::size_t body = chunk.size() - crc_bytes;
    const std::byte* const bytes = chunk.data();
    const std::uint64_t first = load(bytes);
    const bool undeclared = first >> 56 == kUndeclaredMark;
    std::uint64_t difference = first ^ (undeclared ? with_mark(header, kUndeclaredMark) : of_size(header, chunk.size()));
    std::uint64_t word = undeclared ? key : key + chunk.size();
    std::size_t at = kHeaderBytes;
    for (; at + 8 <= body; at += 8) {
      difference |= load(bytes + at) ^ word;
      word = key += kStep;
    }
    if (difference != 0) return false;
    if (at < body && std::memcmp(bytes + at, &word, body - at) != 0) return false;
    return crc_bytes == 0 || crc_matches(chunk);
  }

 private:
  static constexpr std::uint64_t with_mark(std::uint64_t header, std::uint8_t mark) {
    return (header & ~std::uint64_t{0} >> 8) | std::uint64_t{mark} << 56;
  }
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
