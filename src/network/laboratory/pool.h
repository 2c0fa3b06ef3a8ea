// The buffer of the laboratory's switch, as switches of data centres have it: memory that all ports take from, memory of each port alone, a
// dynamic threshold, a limit of a port, cells of one size. Kept by two eBPF programs a port. `admit` stands at the egress of the port,
// before its shaper: it takes what a frame needs or drops the frame. `release` stands where the frame comes out of the shaper's link, and
// gives it back. Occupancy, its maximum and drops are therefore exact, frame by frame.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "network/laboratory/bpf.h"
#include "network/types.h"

namespace rodeo::network::laboratory {

class SharedPool {
 public:
  struct Port {
    std::uint64_t frames = 0;
    std::uint64_t bytes = 0;
    std::uint64_t dropped_bytes = 0;
    DropCount drops;
    /// The largest occupancy of the whole switch that a frame of this port made: frames, and the cells that they take; the same without.
    std::uint64_t max_pool_bytes = 0;
    std::uint64_t max_cell_bytes = 0;
  };

  /// Needs root. Errors: network.laboratory.
  static Result<SharedPool> make(std::uint32_t ports);

  int admit(std::uint32_t port) const { return admit_[port].get(); }
  int release(std::uint32_t port) const { return release_[port].get(); }

  /// The rules of the simulator's switch (simulator/switch_memory.h), without virtual output queues. Cells only while nothing is in the switch:
  /// what was taken must be given back. While two CPUs test the last bytes at the same time, one frame too many can be dropped, never one
  /// too many admitted. Buffers are at most 8 GB.
  Result<void> set(const SwitchBuffer& buffer);
  /// Starts the maximum anew; the counters run on.
  Result<void> forget_maximum();
  Result<Port> port(std::uint32_t port) const;
  /// Bytes of frames that are there.
  Result<std::int64_t> occupancy() const;

 private:
  base::UniqueFd rules_;     // ours
  base::UniqueFd state_;     // the programs'
  base::UniqueFd counters_;  // Port for each port and CPU
  std::uint32_t ports_ = 0;
  std::vector<base::UniqueFd> admit_;
  std::vector<base::UniqueFd> release_;
};

}  // namespace rodeo::network::laboratory
