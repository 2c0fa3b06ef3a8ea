// A PCI function that is a process: the driver's side of the vfio-user protocol (docs/reference/protocols/vfio-user.md),
// over a Unix socket.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

#include "base/fd_socket.h"
#include "card/pci/function.h"

namespace rodeo::card::pci {

/// The waits of a client of a vfio-user server.
struct VfioUserSettings {
  /// The longest time for the whole opening, and for an answer after hurry().
  std::chrono::milliseconds patience{2000};
  /// The longest time for a whole answer of an open card, from the request to the last byte. After it the connection is
  /// broken (card.timeout), because a late answer could be taken as the answer to another request. A dead process closes its
  /// socket; this limit is for a process that is stopped for a while.
  std::chrono::milliseconds silence{kVerbSilence};
  /// The time to poll the socket before sleeping: lowers the latency, but uses a core.
  std::chrono::microseconds spin{0};
};

/// Connects, agrees on the version and asks for regions and interrupts. Errors: card.gone (no server listens, or it hung
/// up), card.timeout, card.protocol (malformed answers). After one of these every later call on the handle returns the same
/// error.
Result<std::unique_ptr<Function>> open_vfio_user(const std::filesystem::path& socket, const Address& address,
                                                 const VfioUserSettings& settings = {});

/// Opens the function on a connected stream socket; errors call it `name`.
Result<std::unique_ptr<Function>> open_vfio_user(base::UniqueFd socket, const std::string& name, const Address& address,
                                                 const VfioUserSettings& settings = {});

}  // namespace rodeo::card::pci
