// The shared buffer of the laboratory's switch: a pool of bytes that all ports take from, kept by two eBPF programs. `admit` stands at the
// egress of each port, before its shaper: it takes a frame's bytes or drops the frame. `release` stands where the frame comes out of the
// shaper's link, and gives them back. Occupancy, its maximum and drops are therefore exact, frame by frame.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "network/laboratory/bpf.h"

namespace rodeo::network::laboratory {

class SharedPool {
 public:
  struct Port {
    std::uint64_t frames = 0;
    std::uint64_t bytes = 0;
    std::uint64_t drops = 0;
    std::uint64_t dropped_bytes = 0;
    std::uint64_t max_pool_bytes = 0;  ///< the largest occupancy of the whole pool that a frame of this port made
  };

  /// Needs root. Errors: network.laboratory.
  static Result<SharedPool> make(std::uint32_t ports);

  int admit(std::uint32_t port) const { return admit_[port].get(); }
  int release() const { return release_.get(); }

  /// Frames that would take the pool above the limit are dropped; nothing: no limit. While two CPUs test the last bytes of the pool at the
  /// same time, one frame too many can be dropped, never one too many admitted.
  Result<void> set_limit(std::optional<std::uint64_t> bytes);
  /// Starts the maximum anew; the counters run on.
  Result<void> forget_maximum();
  Result<Port> port(std::uint32_t port) const;
  Result<std::int64_t> occupancy() const;

 private:
  FileDescriptor limit_;      // one word, ours
  FileDescriptor occupancy_;  // one word, the programs'
  FileDescriptor counters_;   // Port for each port and CPU
  std::vector<FileDescriptor> admit_;
  FileDescriptor release_;
};

}  // namespace rodeo::network::laboratory
