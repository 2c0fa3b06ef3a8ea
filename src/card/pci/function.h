// One PCI function as the driver sees it, whoever is behind it: kernel VFIO, a vfio-user process, or UIO.
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
  std::uint64_t bytes = 0;  // 0: there is no such region
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
  std::uint64_t value = 0;  // to be written, or what was read
};

/// A node of the kernel's, opened for one lock (lock.h): byte `first` + N is N, and the lock ends when this is closed, at the latest with its process.
struct LockNode {
  base::UniqueFd file;
  std::uint64_t first = 0;
};

/// How a function is reached.
enum class BackEnd : unsigned char { vfio, vfio_user, uio };

/// A handle on one function. Calls from several threads are serialised by the implementation; none waits longer than its time-out, and
/// a card or peer that does not answer is an Error (card.timeout, card.gone). The destructor unmaps and closes; it does not stop DMA.
class Function {
 public:
  virtual ~Function() = default;

  virtual const Address& address() const = 0;
  virtual BackEnd back_end() const = 0;

  virtual Result<FunctionRegion> region(unsigned number) const = 0;
  /// Reads or writes `bytes.size()` bytes (1, 2, 4 or 8; naturally aligned, within the region) as one access.
  virtual Result<void> read(unsigned region, std::uint64_t offset, std::span<std::byte> bytes) = 0;
  virtual Result<void> write(unsigned region, std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  /// Reads and writes in order, with as few waits as the back end needs. Writes are posted, as PCIe's are: handed over when this returns, and a later
  /// read sees them done. Stops at the first error.
  virtual Result<void> exchange(std::span<RegionOperation> operations);
  /// Maps part of a mappable range into this process, for as long as the handle lives.
  virtual Result<MappedRegisters> map(unsigned region, MappableRange range) = 0;

  /// Makes memory visible to the card at `iova`. `fd`/`fd_offset` name the file behind it (memfd, hugetlbfs) where the back end needs one
  /// (vfio-user: required), else -1. Alignment: 4 KiB. The caller keeps the memory until dma_unmap or the handle's end.
  virtual Result<void> dma_map(std::span<std::byte> memory, int fd, std::uint64_t fd_offset, std::uint64_t iova) = 0;
  virtual Result<void> dma_unmap(std::uint64_t iova, std::uint64_t bytes) = 0;
  /// True if the card sees the IOVAs that dma_map was given; false if it sees physical addresses (UIO), which `bus_address` then gives.
  virtual bool translates() const = 0;
  /// The address that the card must be told for a mapped byte, and for how many bytes from there it stays contiguous.
  virtual Result<std::pair<std::uint64_t, std::uint64_t>> bus_address(std::uint64_t iova) const = 0;

  /// Number of MSI/MSI-X vectors.
  virtual unsigned interrupts() const = 0;
  /// An eventfd (not blocking) that counts interrupts of one vector; owned by the handle. Message-signalled ones need the bus master bit. A
  /// level-triggered one (UIO) comes once; the call arms it again, after the card's own register has been served.
  virtual Result<int> interrupt(unsigned vector) = 0;

  /// Where kernel locks say who owns what of this function, so that every namespace and user sees them. Nothing (no descriptor): the lock file beside the
  /// card's socket does.
  virtual Result<LockNode> lock_node() { return LockNode{}; }

  /// Any thread: from now on a card that says nothing is waited for no longer than two seconds.
  virtual void hurry() {}

  virtual Result<void> reset() = 0;
  /// Lets the card start transfers of its own (bus master bit).
  virtual Result<void> set_bus_master(bool on) = 0;
};

}  // namespace rodeo::card::pci
