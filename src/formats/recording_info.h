// The contents of a recording of FELIX blocks: format, E-links, chunks, and whether it is sound
// (docs/reference/formats/felix-blocks.md, "Recordings").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "formats/block.h"
#include "formats/block_counters.h"
#include "formats/findings.h"

namespace rodeo::formats {

struct RecordingInfo {
  struct Elink {
    std::uint16_t elink = 0;  ///< the card's 11-bit number
    std::uint64_t blocks = 0;
    std::uint64_t chunks = 0;
    std::uint64_t chunk_bytes = 0;
    std::uint64_t flagged_chunks = 0;  ///< chunks with any chunk_status bit
    /// Flagged chunks that the card marked as truncated, malformed or with a wrong CRC.
    std::uint64_t card_flagged_chunks = 0;
    std::uint32_t smallest_chunk_bytes = UINT32_MAX;  ///< 0 after reading, if there is no chunk
    std::uint32_t largest_chunk_bytes = 0;
    std::uint64_t proven_chunks =
        0;  ///< chunks checked byte by byte, if a seed was given; an E-link with 0 has no provable payload
    /// Chunks without a flag that differ from the seed's payload: findings if other chunks are proven.
    std::uint64_t wrong_chunks = 0;
  };

  BlockFormat format;
  std::uint64_t blocks = 0;      ///< number of whole blocks
  std::uint64_t rest_bytes = 0;  ///< bytes after the last whole block: the recording was cut
  std::vector<Elink> elinks;     ///< ordered by number
  std::array<std::uint64_t, kBlockCounters> counters{};
  Findings findings;  ///< damage and chunks that the card flagged, with the block where each was noticed, counted from 0

  std::uint64_t counter(BlockCounter which) const { return counters[static_cast<std::size_t>(which)]; }

  /// The recording ends with a whole block and no anomaly (is_anomaly) was counted: the recording has all that the card
  /// wrote.
  bool whole() const;
  /// Whole, and without chunks that the card itself marked (is_flag).
  bool sound() const { return findings.total() == 0; }
  std::uint32_t largest_chunk_bytes() const;
  std::uint64_t proven_chunks() const;
};

/// Finds family and block size from the first blocks. Errors, each with the bytes found: formats.empty_recording,
/// .short_recording, .zero_recording, .not_a_recording.
Result<BlockFormat> detect_block_format(std::span<const std::byte> file);

/// The E-links with a block in `file`, by number.
std::vector<std::uint16_t> elinks_of(std::span<const std::byte> file, const BlockFormat& format);

/// Decodes the whole file and adds up its contents; a chunk may be as long as all data of its E-link in the file. Damage is
/// counted, not an error; errors are those of detect_block_format(). Reads every byte a few times: pass a mapped file.
/// `worked` gets the number of bytes decoded since its last call, about once a megabyte, and all of them by the end; it may
/// be empty. With a `seed`, checks chunks with provable payload and the whole extended L1 id, with or without a CRC; the
/// link id is that of the E-link's FID on card 0.
Result<RecordingInfo> inspect_recording(std::span<const std::byte> file,
                                        const std::function<void(std::uint64_t bytes)>& worked = {},
                                        std::optional<std::uint64_t> seed = {});

}  // namespace rodeo::formats
