// A PCI function that is a process: the driver's side of the vfio-user protocol (docs/protocols/vfio-user.md), over a Unix socket.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

#include "base/fd_socket.h"
#include "card/pci/function.h"

namespace rodeo::card::pci {

/// How a client of a vfio-user server waits.
struct VfioUserSettings {
  /// Longest time for all of opening, and for an answer after hurry().
  std::chrono::milliseconds patience{2000};
  /// Longest time for a whole answer of an open card, from its request to its last byte; then the connection counts as broken (card.timeout), because a late
  /// answer could be taken for another's. A process that died closes its socket: this is for one that stands still and goes on.
  std::chrono::milliseconds silence{60'000};
  /// How long to poll the socket without sleeping before it sleeps: lower latency for a core.
  std::chrono::microseconds spin{0};
};

/// Connects, agrees on the version and asks for regions and interrupts. Errors: card.gone (nobody listens, or hung up), card.timeout, card.protocol
/// (answers that are none). After one of these every later call on the handle gives the same error.
Result<std::unique_ptr<Function>> open_vfio_user(const std::filesystem::path& socket, const Address& address,
                                                 const VfioUserSettings& settings = {});

/// The same on a connected stream socket, which errors call `name`.
Result<std::unique_ptr<Function>> open_vfio_user(base::UniqueFd socket, const std::string& name, const Address& address,
                                                 const VfioUserSettings& settings = {});

}  // namespace rodeo::card::pci
