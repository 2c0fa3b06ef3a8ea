// Which network a subscriber and a publisher use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "transport/bus.h"

namespace rodeo::transport {

/// Of the process that asks.
struct Here {
  std::string host;
  std::int64_t pid = 0;
  bool rdma = false;  ///< the machine has an RDMA device

  static Here look();
};

/// What publishers offer that were not told what: tcp, and verbs where there is an RDMA device. Shared memory only by its name: libfabric 1.17 has a lock
/// in it that a peer who is stopped or killed may hold, and who sends to him then waits inside libfabric without an end.
std::vector<std::string> offered_providers(const Here& here);

/// That may be tried with this publisher, the fastest first; empty: it offers none that can be had here. `wanted`: a provider by name, or "auto": verbs
/// where both sides have it, else tcp.
std::vector<std::string> provider_choice(const std::string& wanted, const BusEntry& publisher, const Here& here);

/// Error transport.provider: one of these is no provider that Rodeo knows, or is there twice.
Result<void> refuse_unknown_providers(const std::vector<std::string>& providers);

}  // namespace rodeo::transport
