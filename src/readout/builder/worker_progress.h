// The progress of the workers of one builder, for their peers.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/spsc_ring.h"
#include "rodeo/ids.h"

namespace rodeo::readout {

/// Written only by its worker, read by its peers.
struct alignas(base::kCacheLine) WorkerProgress {
  std::atomic<Sequence> passed{0};   ///< every number up to here is published
  std::atomic<bool> busy{true};      ///< its last look at its input found a page, or it has not looked yet
  std::atomic<bool> waiting{false};  ///< for consumers or for a peer
  std::atomic<bool> drained{false};  ///< the stream has ended, and the sequencer knows it
  std::atomic<bool> ended{false};    ///< in addition, all events are published
};

}  // namespace rodeo::readout
