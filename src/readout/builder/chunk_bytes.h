// The balance of a builder's chunks in bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/named_counters.h"
#include "rodeo/input.h"

namespace rodeo::readout {

/// Payload bytes of chunks. received = built + the sum of `lost`.
struct ChunkBytes {
  std::uint64_t received = 0;  ///< that the input handed over
  std::uint64_t built = 0;     ///< in fragments
  /// In no fragment: of lost chunks by reason, and "cut" off chunks that are in fragments.
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

/// A second base of our builders. Any thread.
class CountsBytes {
 public:
  virtual ChunkBytes chunk_bytes() const = 0;

 protected:
  ~CountsBytes() = default;
};

}  // namespace rodeo::readout
