// Turns the bytes of card spans into chunk runs. One decoder per worker and card, for FELIX blocks or for RDH pages.
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

/// One worker's decoder of one card. One thread calls everything except counters().
class SpanDecoder {
 public:
  virtual ~SpanDecoder() = default;
  /// The free room in `out` that decode() needs for any data.
  virtual formats::DecodeBuffer::Capacity room() const = 0;
  /// The free room that finish() needs.
  virtual formats::DecodeBuffer::Capacity finish_room() const = 0;
  /// Decodes from byte `from` of a span, appends runs to `out`, and returns the number of bytes taken: at least one if `out`
  /// is empty. Runs point into the span or into `out`.
  virtual std::size_t decode(const CardSpan& span, std::size_t from, formats::DecodeBuffer& out) = 0;
  /// Skips the data of a link, or decodes them again. Call between two decode().
  virtual void want(LinkIndex link, bool wanted) = 0;
  /// Delivers open chunks, marked as cut.
  virtual void finish(formats::DecodeBuffer& out) = 0;
  /// Anomalies of the data, by name. Any thread.
  virtual std::vector<NamedCounter> counters() const = 0;
};

/// Makes a decoder for FELIX blocks. `elinks[i]` is the E-link number of link i; blocks of other E-links are skipped. A span
/// must hold whole blocks; bytes left over at its end are counted as `partial_block_bytes`. Throws SetupError for an invalid
/// format.
std::unique_ptr<SpanDecoder> make_block_span_decoder(const formats::BlockFormat& format, std::uint32_t max_chunk_bytes,
                                                     std::span<const std::uint16_t> elinks);

/// Makes a decoder for superpages of RDH pages. `links[i]` is the RDH link id of link i. Superpages of other links are
/// skipped. Throws SetupError.
std::unique_ptr<SpanDecoder> make_rdh_span_decoder(const formats::RdhFrameDecoder::Options& options,
                                                   std::span<const std::uint8_t> links);

}  // namespace rodeo::input
