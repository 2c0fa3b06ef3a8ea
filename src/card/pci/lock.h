// Locks on DMA channels and on a card's configuration: kernel locks on bytes of a file, which end with their process.
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

/// Bytes of a card's lock file or node: byte N is DMA channel N.
inline constexpr unsigned kDescriptorsByte = 252;    // held while a descriptor of a FELIX is switched
inline constexpr unsigned kSlowControlByte = 253;    // held during an exchange with a front-end
inline constexpr unsigned kConfigurationByte = 254;  // held during a read-modify-write or a configuration
inline constexpr unsigned kServerByte = 255;         // held by the emulator while it lives

/// An exclusive lock on one byte of a file, held by this object. It is an open file description lock: every namespace and
/// user that opens the file sees it, and the kernel releases it when the process ends for any reason. Forked children do not
/// share it.
class ByteLock {
 public:
  ByteLock(ByteLock&&) noexcept = default;
  ByteLock& operator=(ByteLock&&) noexcept = default;
  ~ByteLock();
  /// Tries until `patience` is over. Error card.locked says that `what` is in use, and by which process if that is known.
  /// Creates a missing file (mode 0600).
  static Result<ByteLock> acquire(const std::filesystem::path& file, unsigned byte, const std::string& what,
                                  std::chrono::milliseconds patience = {});
  /// Locks a byte of a device node that was opened for this lock alone. `notes` (may be empty) is a plain file for the
  /// process id of the owner, because a node cannot store it. The lock does not depend on this file.
  static Result<ByteLock> acquire(LockNode node, unsigned byte, const std::string& what, const std::filesystem::path& notes,
                                  std::chrono::milliseconds patience = {});

 private:
  explicit ByteLock(base::UniqueFd file) : file_(std::move(file)) {}
  OwnDescriptor file_;
};

/// A name in the abstract socket space. At most one process of a network namespace can bind it: upstream's tools lock a DMA
/// channel in this way.
class NameLock {
 public:
  /// `name` is the text after the leading NUL. Error card.locked if another process has it.
  static Result<NameLock> acquire(const std::string& name, const std::string& what);

 private:
  explicit NameLock(base::UniqueFd socket) : socket_(std::move(socket)) {}
  OwnDescriptor socket_;
};

/// Upstream's name of a channel's lock: "lice_O2_RoC_DMA_3b:00.0_lock", and with "_chan2" before "_lock" for a C-RORC.
/// Nothing for PCI domains other than 0: upstream has no name for them.

std::optional<std::string> upstream_lock_name(const Address& address, std::optional<unsigned> channel);

}  // namespace rodeo::card::pci
