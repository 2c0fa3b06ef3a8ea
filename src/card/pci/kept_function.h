// One PCI function that the keeper holds open, with the memory that clients have mapped for it.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "card/pci/function.h"
#include "card/pci/held_memory.h"
#include "card/pci/keeper_protocol.h"
#include "card/pci/lock.h"
#include "card/pci/vfio_group.h"

namespace rodeo::card::pci {

/// The open groups, by number; functions of one group share it.
using VfioGroups = std::map<unsigned, std::weak_ptr<VfioGroup>>;

/// For one thread. `owner` is the caller's number of a client.
class KeptFunction {
 public:
  static Result<std::unique_ptr<KeptFunction>> open_vfio(const Address& address, VfioGroups& groups);
  static Result<std::unique_ptr<KeptFunction>> open_uio(const Address& address);
  ~KeptFunction();

  const Address& address() const { return address_; }
  BackEnd back_end() const { return group_ ? BackEnd::vfio : BackEnd::uio; }
  /// The IOMMU group, or the resources that `descriptors` has (bit N: resource N).
  std::uint64_t value() const { return value_; }
  /// The descriptors for a client, in the protocol's order.
  std::vector<int> descriptors() const;

  /// Opens the node of the function's locks.
  Result<LockNode> lock_node() const;

  Result<void> map(std::uint64_t owner, int fd, std::uint64_t offset, std::uint64_t iova, std::uint64_t bytes);
  Result<void> unmap(std::uint64_t owner, std::uint64_t iova, std::uint64_t bytes);
  Result<std::vector<PhysicalRun>> physical(std::uint64_t owner, std::uint64_t iova, std::size_t most) const;
  /// Removes the maps of an owner that has gone; after the last owner, switches off bus mastering and interrupts.
  void release(std::uint64_t owner);

  /// Resets the function through sysfs, for clients without the permission (UIO).
  Result<void> reset();

  std::uint64_t mapped_bytes(std::uint64_t owner) const;
  std::size_t maps(std::uint64_t owner) const;
  bool in_use() const { return !maps_.empty(); }

  bool kept = false;

 private:
  struct Map {
    std::uint64_t owner;
    std::uint64_t iova;
    HeldMemory memory;
  };

  KeptFunction(const Address& address, Descriptor configuration, std::uint64_t configuration_offset)
      : address_(address), configuration_(std::move(configuration)), configuration_offset_(configuration_offset) {}
  /// Switches off bus mastering and interrupts.
  void quiet();
  /// Enables all vectors without an eventfd: a client can then connect one vector without disturbing others.
  void detach_interrupts();

  Address address_;
  std::shared_ptr<VfioGroup> group_;  // VFIO only
  Descriptor configuration_;          // VFIO: the device itself
  std::uint64_t configuration_offset_ = 0;
  std::vector<Descriptor> further_;  // UIO: the node, then resources
  std::uint64_t value_ = 0;
  std::optional<ByteLock> alone_;  // UIO: excludes a second keeper
  std::vector<Map> maps_;
};

}  // namespace rodeo::card::pci
