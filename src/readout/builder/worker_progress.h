// How far the workers of one builder have come, for each other.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/spsc_ring.h"
#include "rodeo/ids.h"

namespace rodeo::readout {

/// Written by its worker alone, read by its peers.
struct alignas(base::kCacheLine) WorkerProgress {
  std::atomic<Sequence> passed{0};   ///< every number up to here is published
  std::atomic<bool> busy{true};      ///< its last look at its input found a page, or it has not looked yet
  std::atomic<bool> waiting{false};  ///< for consumers or for a peer
  std::atomic<bool> drained{false};  ///< its stream has ended, and the sequencer knows
  std::atomic<bool> ended{false};    ///< and all is published
};

}  // namespace rodeo::readout
