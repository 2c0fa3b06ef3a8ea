// What the processes of a farm bench share: counts, and a bit for each event.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/mapping.h"

namespace rodeo::bench {

inline constexpr std::uint32_t kMostStandInReadouts = 1024;
inline constexpr std::uint64_t kMostBenchEvents = std::uint64_t{1} << 28;  // of one bench

/// Zero at first.
struct FarmCounts {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> assigned{0};        ///< events that came to a node for the first time
  std::atomic<std::uint64_t> assigned_twice{0};  ///< and again
  std::atomic<std::uint64_t> safe{0};            ///< decisions that nodes were told to be safe
  std::atomic<std::uint64_t> nodes_over{0};      ///< that were told that the run is over
  std::atomic<std::uint64_t> nodes_here{0};
  std::atomic<std::uint64_t> readouts_here{0};
  std::atomic<std::uint64_t> cleared_early{0};  ///< before they were assigned
  std::atomic<std::uint64_t> failures{0};       ///< of stand-ins: what they were told and cannot be
  struct Readout {
    std::atomic<std::uint64_t> cleared{0};  ///< ids
    std::atomic<std::uint64_t> twice{0};
    std::atomic<std::uint64_t> digest{0};  ///< of the ids of each batch
  };
  Readout readouts[kMostStandInReadouts];
};

/// Memory that processes made from here on share.
class FarmMeeting {
 public:
  /// Throws SetupError (bench.processes).
  FarmMeeting();

  FarmCounts& operator*() const { return *reinterpret_cast<FarmCounts*>(counts_.data()); }
  FarmCounts* operator->() const { return &**this; }

  enum class Bit : std::uint8_t { assigned, cleared };
  /// Whether it was set before. Ids beyond kMostBenchEvents count as set.
  bool set(Bit which, std::uint64_t id) const;
  bool is_set(Bit which, std::uint64_t id) const;

 private:
  std::atomic<std::uint64_t>& word(Bit which, std::uint64_t id) const;

  base::Mapping counts_;
  base::Mapping bits_;
};

}  // namespace rodeo::bench
