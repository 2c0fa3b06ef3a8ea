// The common part of functions that the keeper opens: regions behind descriptors, memory that the keeper maps.
#pragma once

#include <memory>
#include <utility>

#include "card/pci/function.h"
#include "card/pci/keeper_client.h"
#include "card/pci/keeper_memory.h"
#include "card/pci/regions.h"

namespace rodeo::card::pci {

/// Kernel VFIO and UIO derive from it: they add interrupts and reset.
class KeeperFunction : public Function {
 public:
  const Address& address() const final { return address_; }
  Result<FunctionRegion> region(unsigned number) const final { return regions_.info(number); }
  Result<void> read(unsigned number, std::uint64_t offset, std::span<std::byte> bytes) final {
    return regions_.read(number, offset, bytes);
  }
  Result<void> write(unsigned number, std::uint64_t offset, std::span<const std::byte> bytes) final {
    return regions_.write(number, offset, bytes);
  }
  Result<MappedRegisters> map(unsigned number, MappableRange range) final { return regions_.map(number, range); }
  Result<void> dma_map(std::span<std::byte> memory, int fd, std::uint64_t fd_offset, std::uint64_t iova) final {
    return memory_.map(memory, fd, fd_offset, iova);
  }
  Result<void> dma_unmap(std::uint64_t iova, std::uint64_t bytes) final { return memory_.unmap(iova, bytes); }
  Result<LockNode> lock_node() final { return keeper_->lock_node(); }
  bool translates() const final { return translates_; }
  Result<std::pair<std::uint64_t, std::uint64_t>> bus_address(std::uint64_t iova) const final {
    return memory_.bus_address(iova);
  }
  Result<void> set_bus_master(bool on) final;

 protected:
  /// `translates`: the card sees IOVAs, not physical addresses.
  KeeperFunction(const Address& address, std::unique_ptr<KeeperClient> keeper, bool translates)
      : address_(address),
        keeper_(std::move(keeper)),
        regions_(address.text()),
        memory_(*keeper_, !translates),
        translates_(translates) {}

  KeeperClient& keeper() { return *keeper_; }
  Regions& regions() { return regions_; }

 private:
  const Address address_;
  std::unique_ptr<KeeperClient> keeper_;
  Regions regions_;
  KeeperMemory memory_;
  const bool translates_;
};

}  // namespace rodeo::card::pci
