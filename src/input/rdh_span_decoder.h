// Superpages of RDH pages in card memory: the frame decoder behind SpanDecoder.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "formats/rdh_frame_decoder.h"
#include "input/span_decoder.h"

namespace rodeo::input {

/// `links[i]` is the RDH link id of link i, and of the superpages that it fills; those of others are skipped. Throws SetupError.
std::unique_ptr<SpanDecoder> make_rdh_span_decoder(const formats::RdhFrameDecoder::Options& options,
                                                   std::span<const std::uint8_t> links);

}  // namespace rodeo::input
