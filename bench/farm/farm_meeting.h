// The shared memory of a farm bench's processes: counts, and a bit for each event.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/mapping.h"

namespace rodeo::bench {

inline constexpr std::uint32_t kMostStandInReadouts = 1024;
inline constexpr std::uint64_t kMostBenchEvents = std::uint64_t{1} << 28;  // events of one bench

/// All counts begin at zero.
struct FarmCounts {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> assigned{0};        ///< events at their first assignment to a node
  std::atomic<std::uint64_t> assigned_twice{0};  ///< events that were assigned again
  std::atomic<std::uint64_t> safe{0};            ///< decisions that the supervisor reported as safe
  std::atomic<std::uint64_t> nodes_over{0};      ///< nodes that know the end of the run
  std::atomic<std::uint64_t> nodes_here{0};
  std::atomic<std::uint64_t> readouts_here{0};
  std::atomic<std::uint64_t> cleared_early{0};  ///< events cleared before their assignment
  std::atomic<std::uint64_t> failures{0};       ///< impossible messages that stand-ins received
  struct Readout {
    std::atomic<std::uint64_t> cleared{0};  ///< number of cleared ids
    std::atomic<std::uint64_t> twice{0};
    std::atomic<std::uint64_t> digest{0};  ///< digest of the ids in all batches
  };
  Readout readouts[kMostStandInReadouts];
};

/// Memory that is shared with all processes forked later.
class FarmMeeting {
 public:
  /// Throws SetupError (bench.processes).
  FarmMeeting();

  FarmCounts& operator*() const { return *reinterpret_cast<FarmCounts*>(counts_.data()); }
  FarmCounts* operator->() const { return &**this; }

  enum class Bit : std::uint8_t { assigned, cleared };
  /// Sets a bit; returns whether it was set before. Ids beyond kMostBenchEvents count as set.
  bool set(Bit which, std::uint64_t id) const;
  bool is_set(Bit which, std::uint64_t id) const;

 private:
  std::atomic<std::uint64_t>& word(Bit which, std::uint64_t id) const;

  base::Mapping counts_;
  base::Mapping bits_;
};

}  // namespace rodeo::bench
