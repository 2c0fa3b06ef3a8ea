// FELIX to-host blocks: header and trailer layouts of the three families (docs/reference/formats/felix-blocks.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "rodeo/chunk.h"

namespace rodeo::formats {

inline constexpr std::uint32_t kBlockUnitBytes = 1024;
inline constexpr std::uint32_t kMaxBlockBytes = 64 * kBlockUnitBytes;
inline constexpr std::uint32_t kBlockHeaderBytes = 4;

enum class BlockFamily : std::uint8_t {
  trailer16,  ///< marker 0xABCD, 16-bit trailers, blocks of 1 KiB
  trailer32,  ///< marker 0xABCE, 32-bit trailers
  phase2,     ///< marker 0xC0CE + ((block KiB - 1) << 8), 32-bit trailers
};

/// The format of a block: constant for a card, a stream or a file.
struct BlockFormat {
  BlockFamily family = BlockFamily::trailer16;
  std::uint32_t block_bytes = kBlockUnitBytes;

  /// The size is a multiple of 1 KiB, at most 64 KiB; 1 KiB with 16-bit trailers, whose length field ends at 1023.
  constexpr bool valid() const {
    return block_bytes >= kBlockUnitBytes && block_bytes <= kMaxBlockBytes && block_bytes % kBlockUnitBytes == 0 &&
           (family != BlockFamily::trailer16 || block_bytes == kBlockUnitBytes);
  }
  constexpr std::uint32_t trailer_bytes() const { return family == BlockFamily::trailer16 ? 2 : 4; }
  constexpr std::uint16_t marker() const {
    switch (family) {
      case BlockFamily::trailer16: return 0xabcd;
      case BlockFamily::trailer32: return 0xabce;
      default: return static_cast<std::uint16_t>(0xc0ce + ((block_bytes / kBlockUnitBytes - 1) << 8));
    }
  }

  /// The format of a marker. Marker 0xABCE does not contain the block size: 1 KiB is returned.
  static constexpr std::optional<BlockFormat> of_marker(std::uint16_t marker) {
    if (marker == 0xabcd) return BlockFormat{BlockFamily::trailer16, kBlockUnitBytes};
    if (marker == 0xabce) return BlockFormat{BlockFamily::trailer32, kBlockUnitBytes};
    if ((marker & 0xc0ff) == 0xc0ce) return BlockFormat{BlockFamily::phase2, ((marker >> 8 & 0x3fU) + 1) * kBlockUnitBytes};
    return std::nullopt;
  }

  bool operator==(const BlockFormat&) const = default;
};

/// First four bytes of a block.
struct BlockHeader {
  std::uint32_t word = 0;

  static BlockHeader read(const std::byte* block) {
    BlockHeader header;
    std::memcpy(&header.word, block, sizeof header.word);
    return header;
  }
  static constexpr BlockHeader of(std::uint16_t elink, std::uint32_t sequence, std::uint16_t marker) {
    return {std::uint32_t{marker} << 16 | (sequence & 0x1fU) << 11 | (elink & 0x7ffU)};
  }
  constexpr std::uint16_t elink() const { return static_cast<std::uint16_t>(word & 0x7ffU); }
  constexpr std::uint32_t sequence() const { return word >> 11 & 0x1fU; }
  constexpr std::uint16_t marker() const { return static_cast<std::uint16_t>(word >> 16); }
};

/// The kinds of the bytes before a trailer.
enum class TrailerType : std::uint8_t {
  null = 0,         ///< padding; its length is ignored
  first = 1,        ///< begin of a chunk that continues in another block
  last = 2,         ///< end of a chunk that begins in an earlier block
  both = 3,         ///< a whole chunk
  middle = 4,       ///< neither begin nor end
  timeout = 5,      ///< filler; with the truncation flag: the end of a chunk that the card gave up
  undefined = 6,    ///< never sent
  out_of_band = 7,  ///< not data; its length is ignored
};

/// Trailers of 16 bits: type 15..13, truncation 12, error 11, CRC 10, length 9..0.
struct Trailer16 {
  using Word = std::uint16_t;
  static constexpr std::uint32_t kBytes = 2;
  static constexpr std::uint32_t kTypeShift = 13;
  static constexpr std::uint32_t kTruncated = 1U << 12;
  static constexpr std::uint32_t kError = 1U << 11;
  static constexpr std::uint32_t kCrc = 1U << 10;
  static constexpr std::uint32_t kBusy = 0;
  static constexpr std::uint32_t kLengthMask = 0x3ff;
};

/// Trailers of 32 bits: type 31..29, truncation 28, error 27, CRC 26, busy 25, reserved 24..16, length 15..0.
struct Trailer32 {
  using Word = std::uint32_t;
  static constexpr std::uint32_t kBytes = 4;
  static constexpr std::uint32_t kTypeShift = 29;
  static constexpr std::uint32_t kTruncated = 1U << 28;
  static constexpr std::uint32_t kError = 1U << 27;
  static constexpr std::uint32_t kCrc = 1U << 26;
  static constexpr std::uint32_t kBusy = 1U << 25;
  static constexpr std::uint32_t kLengthMask = 0xffff;
};

/// The chunk_status bits for a trailer's flags.
template <typename Trailer>
constexpr std::uint8_t status_of_trailer(std::uint32_t trailer) {
  return static_cast<std::uint8_t>(((trailer & Trailer::kTruncated) != 0 ? chunk_status::kFirmwareTruncated : 0) |
                                   ((trailer & Trailer::kError) != 0 ? chunk_status::kFirmwareMalformed : 0) |
                                   ((trailer & Trailer::kCrc) != 0 ? chunk_status::kFirmwareCrc : 0) |
                                   ((trailer & Trailer::kBusy) != 0 ? chunk_status::kBusy : 0));
}

/// The reverse; drops bits that have no flag in this family.
template <typename Trailer>
constexpr std::uint32_t trailer_flags_of(std::uint8_t status) {
  return ((status & chunk_status::kFirmwareTruncated) != 0 ? Trailer::kTruncated : 0) |
         ((status & chunk_status::kFirmwareMalformed) != 0 ? Trailer::kError : 0) |
         ((status & chunk_status::kFirmwareCrc) != 0 ? Trailer::kCrc : 0) |
         ((status & chunk_status::kBusy) != 0 ? Trailer::kBusy : 0);
}

}  // namespace rodeo::formats
