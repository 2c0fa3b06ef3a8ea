// The driver's interface to one PCI function: through kernel VFIO, a vfio-user process, or UIO.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd_socket.h"
#include "card/pci/mapped_registers.h"
#include "card_registers/pci_address.h"

namespace rodeo::card::pci {

using Address = card_registers::PciAddress;

/// A part of a region that may be mapped, in bytes from the region's begin.
struct MappableRange {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// Regions have VFIO's numbers: 0-5 BARs, 6 ROM, 7 configuration space.
struct FunctionRegion {
  std::uint64_t bytes = 0;  // 0: the region does not exist
  bool readable = false;
  bool writable = false;
  std::vector<MappableRange> mappable;
};
inline constexpr unsigned kConfigurationRegion = 7;

/// One access of a batch.
struct RegionOperation {
  unsigned region = 0;
  std::uint64_t offset = 0;
  std::uint32_t bytes = 4;  // 4 or 8
  bool write = false;
  std::uint64_t value = 0;  // the value to write, or the value read
};

/// A device node, opened for one lock (lock.h). Byte N of the lock is byte `first` + N of the node. Closing the node, or the
/// end of the process, releases it.
struct LockNode {
  base::UniqueFd file;
  std::uint64_t first = 0;
};

/// The way in which the driver reaches a function.
enum class BackEnd : unsigned char { vfio, vfio_user, uio };

/// Properties of a card that follow from its back end.
struct Capabilities {
  /// Each access is a message to another process. exchange() saves round trips, and the process may be silent. Without
  /// this, an access is a load or store of the CPU.
  bool messages = false;
  /// The host's kernel has the device: sysfs counts its errors, and upstream's tools may use it at the same time.
  bool kernel_device = true;
  /// `rodeo emulate` generates the data of its links.
  bool emulated = false;
};
constexpr Capabilities capabilities_of(BackEnd back_end) {
  if (back_end == BackEnd::vfio_user) return {.messages = true, .kernel_device = false, .emulated = true};
  return {};
}

/// The longest wait for an answer of an open emulated card. A verb waits only briefly, so that it ends soon after Ctrl-C. A
/// run waits for an emulator that is stopped for a while, and calls hurry() when it ends.
inline constexpr std::chrono::milliseconds kVerbSilence{2'000};
inline constexpr std::chrono::milliseconds kRunSilence{60'000};

/// A handle on one function. The implementation serialises calls from several threads. Every call has a time-out: a card or
/// peer that does not answer gives an Error (card.timeout, card.gone). The destructor unmaps and closes; it does not stop
/// DMA.
class Function {
 public:
  virtual ~Function() = default;

  virtual const Address& address() const = 0;
  virtual Capabilities capabilities() const { return {}; }

  virtual Result<FunctionRegion> region(unsigned number) const = 0;
  /// Reads or writes `bytes.size()` bytes (1, 2, 4 or 8; naturally aligned, within the region) as one access.
  virtual Result<void> read(unsigned region, std::uint64_t offset, std::span<std::byte> bytes) = 0;
  virtual Result<void> write(unsigned region, std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  /// Reads and writes in order, with as few round trips as the back end needs. Writes are posted, as on PCIe: this call
  /// hands them over, and a later read sees them done. Stops at the first error.
  virtual Result<void> exchange(std::span<RegionOperation> operations);
  /// Maps part of a mappable range into this process, for as long as the handle lives.
  virtual Result<MappedRegisters> map(unsigned region, MappableRange range) = 0;

  /// Makes memory visible to the card at `iova`. `fd`/`fd_offset` name the file behind the memory (memfd, hugetlbfs) if the
  /// back end needs one (vfio-user does), else -1. Alignment: 4 KiB. The caller keeps the memory until dma_unmap or the end
  /// of the handle.
  virtual Result<void> dma_map(std::span<std::byte> memory, int fd, std::uint64_t fd_offset, std::uint64_t iova) = 0;
  virtual Result<void> dma_unmap(std::uint64_t iova, std::uint64_t bytes) = 0;
  /// True if the card sees the IOVAs that were passed to dma_map. False if it sees physical addresses (UIO), which
  /// `bus_address` returns.
  virtual bool translates() const = 0;
  /// The card's address of a mapped byte, and the number of contiguous bytes from there.
  virtual Result<std::pair<std::uint64_t, std::uint64_t>> bus_address(std::uint64_t iova) const = 0;

  /// Number of MSI/MSI-X vectors.
  virtual unsigned interrupts() const = 0;
  /// An eventfd (not blocking) that counts interrupts of one vector; the handle owns it. Message-signalled interrupts need
  /// the bus master bit. A level-triggered interrupt (UIO) comes once: first serve the card's own register, then call this
  /// again to arm it.
  virtual Result<int> interrupt(unsigned vector) = 0;

  /// The node for kernel locks on parts of this function; every namespace and user sees them. Without a descriptor: use the
  /// lock file beside the card's socket.
  virtual Result<LockNode> lock_node() { return LockNode{}; }

  /// For any thread: from now on a wait for a silent card is short (kVerbSilence).
  virtual void hurry() {}

  virtual Result<void> reset() = 0;
  /// Allows or forbids the card to start transfers (bus master bit).
  virtual Result<void> set_bus_master(bool on) = 0;
};

}  // namespace rodeo::card::pci
