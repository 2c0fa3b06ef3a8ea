// The progress of the workers of one builder, for their peers.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/spsc_ring.h"
#include "rodeo/ids.h"

namespace rodeo::readout {

/// The worker writes it, its peers read it.
struct alignas(base::kCacheLine) WorkerProgress {
  std::atomic<Sequence> passed{0};   ///< all numbers up to this one are published
  std::atomic<bool> busy{true};      ///< the last look at the input found a page, or there was no look yet
  std::atomic<bool> waiting{false};  ///< the worker waits for consumers or for a peer
  std::atomic<bool> drained{false};  ///< the stream has ended, and the sequencer knows it
  std::atomic<bool> ended{false};    ///< the stream has ended, and all events are published
};

}  // namespace rodeo::readout
