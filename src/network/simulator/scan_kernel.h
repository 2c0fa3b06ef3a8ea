// Scans many times at once: finds those before a given time, and the earliest one. The CPU decides which kernel runs; all
// kernels give the same result.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "network/simulator/time.h"

namespace rodeo::network {

/// Counts must be multiples of kScanStep: fill up with kNever.
inline constexpr std::size_t kScanStep = 8;

struct ScanKernel {
  Picoseconds (*earliest)(const Picoseconds* times, std::size_t count);
  /// Writes the indices of the times before `end`, ascending, to `places` (with room for all times); returns their number.
  std::size_t (*before)(const Picoseconds* times, std::size_t count, Picoseconds end, std::uint32_t* places);
};

/// The fastest kernel for this level.
const ScanKernel& scan_kernel(base::CpuLevel level);

}  // namespace rodeo::network
