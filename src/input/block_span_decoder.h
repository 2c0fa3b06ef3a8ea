// FELIX blocks in card memory: the block decoder behind SpanDecoder.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "formats/block.h"
#include "input/span_decoder.h"

namespace rodeo::input {

/// `elinks[i]` is the card's number of link i; other E-links' blocks are skipped. A span must hold whole blocks: what is left over at its end
/// counts as `partial_block_bytes`. Throws SetupError for an impossible format.
std::unique_ptr<SpanDecoder> make_block_span_decoder(const formats::BlockFormat& format, std::uint32_t max_chunk_bytes,
                                                     std::span<const std::uint16_t> elinks);

}  // namespace rodeo::input
