// What turns the bytes of card spans into chunk runs: one per worker and card, for FELIX blocks or for RDH pages.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "formats/block.h"
#include "formats/rdh_frame_decoder.h"
#include "input/card_spans.h"
#include "rodeo/input.h"

namespace rodeo::input {

/// One worker's decoder of one card. One thread calls all but counters().
class SpanDecoder {
 public:
  virtual ~SpanDecoder() = default;
  /// Room that makes decode() go on whatever comes.
  virtual formats::DecodeBuffer::Capacity room() const = 0;
  /// Room for finish().
  virtual formats::DecodeBuffer::Capacity finish_room() const = 0;
  /// Decodes from byte `from` of a span, appends runs to `out`, and returns the bytes taken: at least one if `out` is empty. Runs point
  /// into the span or into `out`.
  virtual std::size_t decode(const CardSpan& span, std::size_t from, formats::DecodeBuffer& out) = 0;
  /// Skips what comes of a link, or decodes it again. Between two decode().
  virtual void want(LinkIndex link, bool wanted) = 0;
  /// Hands over what is still open, marked as cut.
  virtual void finish(formats::DecodeBuffer& out) = 0;
  /// What was wrong with the data, by name. Any thread.
  virtual std::vector<NamedCounter> counters() const = 0;
};

/// FELIX blocks. `elinks[i]` is the card's number of link i; other E-links' blocks are skipped. A span must hold whole blocks: what is left over at its
/// end counts as `partial_block_bytes`. Throws SetupError for an impossible format.
std::unique_ptr<SpanDecoder> make_block_span_decoder(const formats::BlockFormat& format, std::uint32_t max_chunk_bytes,
                                                     std::span<const std::uint16_t> elinks);

/// Superpages of RDH pages. `links[i]` is the RDH link id of link i, and of the superpages that it fills; those of others are skipped. Throws SetupError.
std::unique_ptr<SpanDecoder> make_rdh_span_decoder(const formats::RdhFrameDecoder::Options& options,
                                                   std::span<const std::uint8_t> links);

}  // namespace rodeo::input
