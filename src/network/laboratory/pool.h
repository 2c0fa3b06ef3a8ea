// The buffer of the laboratory's switch, as in switches of data centres: memory shared by all ports, dedicated memory of
// each port, a dynamic threshold, a limit for each port, cells of one size. Two eBPF programs for each port count the
// memory. `admit` runs at the egress of the port, before its shaper: it takes memory for a frame, or drops the frame.
// `release` runs where the frame leaves the shaper's link, and frees the memory. So occupancy, its maximum and drops are
// exact, frame by frame.
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
    /// The largest occupancy of the whole switch after a frame of this port: bytes of frames, and bytes of their cells (both
    /// are equal without cells).
    std::uint64_t max_pool_bytes = 0;
    std::uint64_t max_cell_bytes = 0;
  };

  /// Needs root. Errors: network.laboratory.
  static Result<SharedPool> make(std::uint32_t ports);

  int admit(std::uint32_t port) const { return admit_[port].get(); }
  int release(std::uint32_t port) const { return release_[port].get(); }

  /// The rules of the simulator's switch (simulator/switch_memory.h), without virtual output queues. Change cells only while
  /// the switch is empty, because the bytes that were charged must be freed. If two CPUs test the last free bytes at the
  /// same time, a frame may be dropped unnecessarily, but a frame that does not fit is never admitted. Buffers are at most 8
  /// GB.
  Result<void> set(const SwitchBuffer& buffer);
  /// Resets the maximum; the counters continue.
  Result<void> forget_maximum();
  Result<Port> port(std::uint32_t port) const;
  /// Bytes of the frames in the switch.
  Result<std::int64_t> occupancy() const;

 private:
  base::UniqueFd rules_;     // this process writes them
  base::UniqueFd state_;     // the eBPF programs write it
  base::UniqueFd counters_;  // a Port for each port and CPU
  std::uint32_t ports_ = 0;
  std::vector<base::UniqueFd> admit_;
  std::vector<base::UniqueFd> release_;
};

}  // namespace rodeo::network::laboratory
