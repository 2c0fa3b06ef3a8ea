// Chooses the network that a subscriber and a publisher use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "transport/bus.h"

namespace rodeo::transport {

/// The machine of this process.
struct Here {
  std::string host;
  std::int64_t pid = 0;
  bool rdma = false;  ///< the machine has an RDMA device

  static Here detect();
};

/// The default offer of a publisher: tcp, and verbs where there is an RDMA device. Shared memory is offered only by its
/// name: libfabric 1.17 has a lock in it. A peer that is stopped or killed may hold that lock, and a sender to that peer
/// then waits inside libfabric for ever.
std::vector<std::string> offered_providers(const Here& here);

/// The providers to try with this publisher, the fastest first. Empty: this machine has none of the offered providers.
/// `wanted` is the name of a provider, or "auto": verbs if both sides have it, else tcp.
std::vector<std::string> provider_choice(const std::string& wanted, const BusEntry& publisher, const Here& here);

/// Error transport.provider: Rodeo does not know one of these, or one is named twice.
Result<void> refuse_unknown_providers(const std::vector<std::string>& providers);

}  // namespace rodeo::transport
