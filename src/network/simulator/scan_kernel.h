// Looks through many times at once: which are before a given one, and the earliest. Chosen by what the CPU has; all answer the same.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "network/simulator/time.h"

namespace rodeo::network {

/// Counts are multiples of kScanStep: fill up with kNever.
inline constexpr std::size_t kScanStep = 8;

struct ScanKernel {
  Picoseconds (*earliest)(const Picoseconds* times, std::size_t count);
  /// Places of the times before `end`, ascending, to `places` (room for all of them); returns how many.
  std::size_t (*before)(const Picoseconds* times, std::size_t count, Picoseconds end, std::uint32_t* places);
};

/// The fastest for this level.
const ScanKernel& scan_kernel(base::CpuLevel level);

}  // namespace rodeo::network
