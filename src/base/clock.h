// The two clocks of a readout: steady time for intervals, and CPU time used by a thread.
#pragma once

#include <cstdint>
#include <ctime>

namespace rodeo::base {

/// Monotonic time in nanoseconds.
inline std::uint64_t steady_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

/// CPU seconds used by the whole process up to now.
inline double process_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace rodeo::base
