// What turns the bytes of card spans into chunk runs: one per worker and card, for FELIX blocks or for RDH pages.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "formats/decode_buffer.h"
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
  /// Hands over what is still open, marked as cut.
  virtual void finish(formats::DecodeBuffer& out) = 0;
  /// What was wrong with the data, by name. Any thread.
  virtual std::vector<NamedCounter> counters() const = 0;
};

}  // namespace rodeo::input
