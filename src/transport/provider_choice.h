// Which network a subscriber and a publisher use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "transport/bus.h"

namespace rodeo::transport {

/// Of the process that asks.
struct Here {
  std::string host;
  std::int64_t pid = 0;
  bool rdma = false;               ///< the machine has an RDMA device
  std::uint64_t shared_bytes = 0;  ///< free for memory that processes share

  static Here look();
};

/// Both ends of a connection through shared memory take memory for it: with less than this, nobody should begin one.
inline constexpr std::uint64_t kLeastSharedBytes = 256U << 20;

/// What publishers offer: tcp and shm, and verbs where there is an RDMA device.
std::vector<std::string> offered_providers(const Here& here);

/// That may be tried with this publisher, the fastest first; empty: it offers none that can be had here. `wanted`: a provider by name, or "auto": verbs
/// where both sides have it, shared memory within a host and not within a process, else tcp.
std::vector<std::string> provider_choice(const std::string& wanted, const BusEntry& publisher, const Here& here);

}  // namespace rodeo::transport
