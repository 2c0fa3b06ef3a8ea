// An IOMMU group with its container. The kernel lets one process open it once: only the keeper opens groups.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "card/pci/function.h"
#include "card/pci/keeper_protocol.h"

namespace rodeo::card::pci {

/// One thread at a time. The destructor removes all maps; a device that clients still have open keeps the kernel's group
/// busy.
class VfioGroup {
 public:
  /// Errors: card.driver (modules, drivers of the group's other devices), card.permission, card.held, card.no_iommu.
  static Result<VfioGroup> open(unsigned number);

  unsigned number() const { return number_; }
  /// Opens the device of a function of the group.
  Result<Descriptor> device(const Address& address) const;

  /// Pins memory of this process and makes it visible to the group's devices. Errors: card.memlock, card.dma_memory.
  Result<void> map(std::span<std::byte> memory, std::uint64_t iova);
  /// Removes whole maps only; returns the number of bytes removed.
  Result<std::uint64_t> unmap(std::uint64_t iova, std::uint64_t bytes);

 private:
  VfioGroup(unsigned number, Descriptor container, Descriptor group)
      : number_(number), container_(std::move(container)), group_(std::move(group)) {}
  /// "0x0-0xfedfffff, 0xfef00000-0x7fffffffff", if the kernel reports the ranges.
  std::string usable_ranges() const;

  unsigned number_ = 0;
  Descriptor container_;
  Descriptor group_;
};

}  // namespace rodeo::card::pci
