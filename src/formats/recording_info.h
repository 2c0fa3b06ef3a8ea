// What a recording of FELIX blocks holds: format, E-links, chunks, and whether it is sound (docs/formats/felix-blocks.md,
// "Recordings").
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
    std::uint64_t flagged_chunks = 0;  ///< with any chunk_status bit
    /// Of these, those that the card said are truncated, malformed or wrong by their CRC.
    std::uint64_t card_flagged_chunks = 0;
    std::uint32_t smallest_chunk_bytes = UINT32_MAX;  ///< 0 once the file was read, if there is no chunk
    std::uint32_t largest_chunk_bytes = 0;
    std::uint64_t proven_chunks =
        0;  ///< byte by byte, if a seed was given; of an E-link without any nothing is said of payload
    std::uint64_t wrong_chunks = 0;  ///< not flagged, and not what the seed says: each is a finding if others are proven
  };

  BlockFormat format;
  std::uint64_t blocks = 0;      ///< whole ones
  std::uint64_t rest_bytes = 0;  ///< behind the last whole block: the recording was cut
  std::vector<Elink> elinks;     ///< by number
  std::array<std::uint64_t, kBlockCounters> counters{};
  Findings
      findings;  ///< damage and what the card flagged, each at the block where it was noticed, whose number counts from 0

  std::uint64_t counter(BlockCounter which) const { return counters[static_cast<std::size_t>(which)]; }

  /// The recording ends with a whole block and no anomaly (is_anomaly) was counted: it is what the card wrote.
  bool whole() const;
  /// Whole, and there is no chunk in it that the card itself marked (is_flag).
  bool sound() const { return findings.total() == 0; }
  std::uint32_t largest_chunk_bytes() const;
  std::uint64_t proven_chunks() const;
};

/// Family and block size from the first blocks. Errors, each with what was found: formats.empty_recording, .short_recording,
/// .zero_recording, .not_a_recording.
Result<BlockFormat> detect_block_format(std::span<const std::byte> file);

/// The E-links that have a block in `file`, by number.
std::vector<std::uint16_t> elinks_of(std::span<const std::byte> file, const BlockFormat& format);

/// Decodes the whole file and adds up what is in it; a chunk may be as long as what its E-link has in the file. Damage is counted,
/// not an error; errors are those of detect_block_format(). Reads every byte a few times: put a mapped file behind it. `worked` is told of the bytes that
/// have been decoded since it was told last, about once a megabyte, and of all of them in the end; it may be empty. With a `seed` chunks are proven that carry
/// provable payload with the whole extended L1 id, with or without a CRC; the link id is that of the E-link's FID on card 0.
Result<RecordingInfo> inspect_recording(std::span<const std::byte> file,
                                        const std::function<void(std::uint64_t bytes)>& worked = {},
                                        std::optional<std::uint64_t> seed = {});

}  // namespace rodeo::formats
