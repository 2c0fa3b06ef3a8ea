// Who may use a DMA channel or change a card's configuration: kernel locks on bytes of a file, which end with their process.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/fd_socket.h"
#include "card/pci/function.h"
#include "card/pci/owner_process.h"

namespace rodeo::card::pci {

/// Bytes of a card's lock file or node: N is DMA channel N.
inline constexpr unsigned kDescriptorsByte = 252;    // held while a descriptor of a FELIX is switched
inline constexpr unsigned kSlowControlByte = 253;    // held during an exchange with a front-end
inline constexpr unsigned kConfigurationByte = 254;  // held during a read-modify-write or a configuration
inline constexpr unsigned kServerByte = 255;         // held by the emulator while it lives

/// An exclusive lock of one byte of a file, held by this object: an open file description lock, which every namespace and user that opens the file
/// sees, and which the kernel releases when the process ends however it ends. Forked children do not share it.
class ByteLock {
 public:
  ByteLock(ByteLock&&) noexcept = default;
  ByteLock& operator=(ByteLock&&) noexcept = default;
  ~ByteLock();
  /// Tries until `patience` is over. `what` is for the error (card.locked), which names the process that holds it where that is known. The file is made
  /// (mode 0600) if it is not there.
  static Result<ByteLock> acquire(const std::filesystem::path& file, unsigned byte, const std::string& what,
                                  std::chrono::milliseconds patience = {});
  /// The same on a device node, which was opened for this lock alone. `notes` (may be empty) is a plain file in which the holder's process stands, since
  /// a node cannot hold that; whether it can be written makes no difference to the lock.
  static Result<ByteLock> acquire(LockNode node, unsigned byte, const std::string& what, const std::filesystem::path& notes,
                                  std::chrono::milliseconds patience = {});

 private:
  explicit ByteLock(base::UniqueFd file) : file_(std::move(file)) {}
  OwnDescriptor file_;
};

/// A name in the abstract socket space, bound by at most one process of a network namespace: what upstream's tools use as lock of a DMA channel.
class NameLock {
 public:
  /// `name` is what follows the leading NUL; card.locked if somebody has it.
  static Result<NameLock> acquire(const std::string& name, const std::string& what);

 private:
  explicit NameLock(base::UniqueFd socket) : socket_(std::move(socket)) {}
  OwnDescriptor socket_;
};

/// Upstream's name of a channel's lock: "lice_O2_RoC_DMA_3b:00.0_lock", and with "_chan2" before "_lock" for a C-RORC. Nothing where upstream has no
/// name: PCI domains other than 0.

std::optional<std::string> upstream_lock_name(const Address& address, std::optional<unsigned> channel);

}  // namespace rodeo::card::pci
