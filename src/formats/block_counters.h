// The counters of a block decoder: the names under which faults of FELIX blocks are reported
// (docs/reference/formats/felix-blocks.md, "Reading").
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/counters.h"

namespace rodeo::formats {

enum class BlockCounter : std::uint8_t {
  blocks,
  chunks,
  chunk_bytes,
  split_chunks,
  bad_marker,
  unmapped_blocks,
  sequence_gaps,
  lost_blocks,
  cut_by_gap,
  bad_trailer,
  before_join,
  orphan_middle,
  orphan_last,
  unterminated,
  undefined_trailer,
  oversize,
  cut_bytes,
  unfinished,
  given_up,
  timeouts,
  null_trailers,
  out_of_band,
  firmware_truncated,
  firmware_malformed,
  firmware_crc,
  busy,
  count,
};

inline constexpr std::size_t kBlockCounters = static_cast<std::size_t>(BlockCounter::count);
using BlockCounters = base::CounterBlock<BlockCounter>;

/// The descriptions, in the order of the enum.
inline constexpr std::array<base::CounterInfo, kBlockCounters> kBlockCounterInfo{{
    {"blocks", "blocks", "all blocks, with any contents"},
    {"chunks", "chunks", "chunks handed over"},
    {"chunk_bytes", "bytes", "bytes of the chunks handed over"},
    {"split_chunks", "chunks", "chunks put together from several pieces, or cut while open"},
    {"bad_marker", "blocks", "blocks skipped because their marker is not the configured format's"},
    {"unmapped_blocks", "blocks", "blocks skipped because their E-link is not in the list"},
    {"sequence_gaps", "gaps", "blocks whose sequence number does not follow the E-link's last one"},
    {"lost_blocks", "blocks", "blocks missing at sequence gaps (modulo 32, so more may be missing)"},
    {"cut_by_gap", "chunks", "chunks cut short because the block with their rest is missing"},
    {"bad_trailer", "blocks", "blocks whose trailers do not add up; their chunks are marked software-malformed"},
    {"before_join", "pieces", "pieces dropped because their chunk began before the stream was joined"},
    {"orphan_middle", "pieces", "middle pieces dropped because their chunk's begin was not seen"},
    {"orphan_last", "pieces", "last pieces dropped because their chunk's begin was not seen"},
    {"unterminated", "chunks", "chunks cut short because another began before their last piece"},
    {"undefined_trailer", "pieces", "pieces dropped because their trailer has the undefined type"},
    {"oversize", "chunks", "chunks cut to the configured maximum size"},
    {"cut_bytes", "bytes", "bytes cut off chunks above the maximum size"},
    {"unfinished", "chunks", "chunks still open when the stream ended"},
    {"given_up", "chunks", "chunks that the card ended with a truncating time-out"},
    {"timeouts", "trailers", "time-out fillers: the E-link was quiet and its block was flushed"},
    {"null_trailers", "trailers", "null trailers"},
    {"out_of_band", "trailers", "out-of-band trailers"},
    {"firmware_truncated", "chunks", "chunks that the firmware marked truncated"},
    {"firmware_malformed", "chunks", "chunks that the firmware marked erroneous"},
    {"firmware_crc", "chunks", "chunks that the firmware marked with a CRC error"},
    {"busy", "chunks", "chunks during which the front-end signalled busy"},
}};

/// Chunks that the card itself marked: the data of the link were incomplete or wrong.
inline constexpr std::array kBlockFlags{BlockCounter::given_up, BlockCounter::firmware_truncated,
                                        BlockCounter::firmware_malformed, BlockCounter::firmware_crc};
constexpr bool is_flag(BlockCounter counter) { return std::ranges::find(kBlockFlags, counter) != kBlockFlags.end(); }

/// True if the counter shows damage or loss between the card's input and this process; false if it only describes the data
/// or the two ends of the stream.
constexpr bool is_anomaly(BlockCounter counter) {
  switch (counter) {
    case BlockCounter::bad_marker:
    case BlockCounter::sequence_gaps:
    case BlockCounter::lost_blocks:
    case BlockCounter::cut_by_gap:
    case BlockCounter::bad_trailer:
    case BlockCounter::orphan_middle:
    case BlockCounter::orphan_last:
    case BlockCounter::unterminated:
    case BlockCounter::undefined_trailer:
    case BlockCounter::oversize: return true;
    default: return false;
  }
}

}  // namespace rodeo::formats
