// The byte balance of a builder's chunks.
#pragma once

#include <cstdint>
#include <vector>

#include "base/named_counters.h"
#include "rodeo/input.h"

namespace rodeo::readout {

/// Payload bytes of chunks. received = built + the sum of `lost`.
struct ChunkBytes {
  std::uint64_t received = 0;  ///< bytes that the input handed over
  std::uint64_t built = 0;     ///< the part of these bytes that is in fragments
  /// Bytes in no fragment: the bytes of lost chunks by reason, and "cut" for bytes that were cut off chunks in fragments.
  std::vector<NamedCounter> lost = {};

  std::uint64_t lost_sum() const {
    std::uint64_t sum = 0;
    for (const NamedCounter& reason : lost) sum += reason.value;
    return sum;
  }
  void add(const ChunkBytes& more) {
    received += more.received;
    built += more.built;
    for (const NamedCounter& reason : more.lost) base::add_counter(lost, reason);
  }
};

/// An additional interface of the built-in builders. Any thread.
class CountsBytes {
 public:
  virtual ChunkBytes chunk_bytes() const = 0;

 protected:
  ~CountsBytes() = default;
};

}  // namespace rodeo::readout
