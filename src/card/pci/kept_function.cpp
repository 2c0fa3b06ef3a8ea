#include "card/pci/kept_function.h"

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "base/log.h"
#include "base/sentence.h"
#include "card/pci/sysfs.h"

namespace rodeo::card::pci {
namespace {

constexpr unsigned kResources = 6;
constexpr std::uint32_t kMostVectors = 32;
constexpr std::uint64_t kMemoryResource = 0x200;  // IORESOURCE_MEM in the flags of sysfs' `resource`

Result<Descriptor> open_file(const std::string& path, const Address& address) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file) return file;
  return std::unexpected(Error{errno == EACCES || errno == EPERM ? "card.permission" : "card.driver",
                               fmt::format("cannot open {}: {}", path, std::strerror(errno)), address.text(),
                               errno == EACCES || errno == EPERM ? "run the keeper as root: sudo rodeo card keep" : ""});
}

/// Bit N is set if resource N is memory that can be mapped.
unsigned memory_resources(const std::string& directory) {
  std::ifstream file(directory + "/resource");
  unsigned mask = 0;
  std::uint64_t begin = 0, end = 0, flags = 0;
  file >> std::hex;
  for (unsigned number = 0; number < kResources && (file >> begin >> end >> flags); ++number) {
    if ((flags & kMemoryResource) != 0 && end > begin) mask |= 1U << number;
  }
  return mask;
}

}  // namespace

Result<std::unique_ptr<KeptFunction>> KeptFunction::open_vfio(const Address& address, VfioGroups& groups) {
  const auto found = RODEO_TRY(find_function(address));
  RODEO_TRY(usable_back_end(found, false));
  std::shared_ptr<VfioGroup> group = groups[*found.iommu_group].lock();
  if (!group) {
    auto opened = RODEO_TRY(VfioGroup::open(*found.iommu_group));
    group = std::make_shared<VfioGroup>(std::move(opened));
    groups[group->number()] = group;
  }
  auto device = RODEO_TRY(group->device(address));
  vfio_region_info region{};
  region.argsz = sizeof region;
  region.index = VFIO_PCI_CONFIG_REGION_INDEX;
  if (::ioctl(device.get(), VFIO_DEVICE_GET_REGION_INFO, &region) != 0)
    return std::unexpected(
        Error{"card.driver", fmt::format("no configuration space: {}", std::strerror(errno)), address.text(), ""});
  std::unique_ptr<KeptFunction> function(new KeptFunction(address, std::move(device), region.offset));
  function->value_ = group->number();
  function->group_ = std::move(group);
  function->detach_interrupts();
  return function;
}

Result<std::unique_ptr<KeptFunction>> KeptFunction::open_uio(const Address& address) {
  const auto found = RODEO_TRY(find_function(address));
  const auto usable = RODEO_TRY(usable_back_end(found, true));
  if (usable != BackEnd::uio || !found.uio) {
    return std::unexpected(Error{"card.driver",
                                 fmt::format("the card is driven by {}, not by uio_pci_generic", found.driver),
                                 address.text(), "do not ask for UIO, or " + how_to_bind(address, "uio_pci_generic")});
  }
  const std::string directory = function_directory(address).string();
  auto configuration = RODEO_TRY(open_file(directory + "/config", address));
  std::unique_ptr<KeptFunction> function(new KeptFunction(address, std::move(configuration), 0));
  auto node = RODEO_TRY(open_file(fmt::format("/dev/uio{}", *found.uio), address));
  function->further_.push_back(std::move(node));
  const unsigned memory = memory_resources(directory);
  for (unsigned number = 0; number < kResources; ++number) {
    if ((memory >> number & 1U) == 0) continue;
    auto resource = RODEO_TRY(open_file(fmt::format("{}/resource{}", directory, number), address));
    function->further_.push_back(std::move(resource));
  }
  function->value_ = memory;
  // Without a group, only this lock keeps a second keeper away from the function.
  auto lock = RODEO_TRY(function->lock_node());
  auto alone = ByteLock::acquire(std::move(lock), kServerByte, "the card", std::filesystem::path());
  if (!alone)
    return std::unexpected(Error{"card.held", "another keeper has the card", address.text(),
                                 "use its socket (RODEO_KEEPER_SOCKET), or end it: rodeo card keep --stop"});
  function->alone_.emplace(std::move(*alone));
  return function;
}

// Opens a node that every keeper of the host would open. The group's node can be opened only once, by the keeper. So the
// container's node serves for the functions of all groups, each with its own bytes. Without a group the node is the
// function's configuration space. (Not /dev/uioN: closing it switches bus mastering off.)
Result<LockNode> KeptFunction::lock_node() const {
  const std::string path = group_ != nullptr ? "/dev/vfio/vfio" : (function_directory(address_) / "config").string();
  auto file = RODEO_TRY(open_file(path, address_));
  const std::uint64_t place = static_cast<std::uint64_t>(address_.domain) << 16 |
                              static_cast<std::uint64_t>(address_.bus) << 8 |
                              static_cast<std::uint64_t>(address_.device) << 3 | address_.function;
  return LockNode{std::move(file), place << 8};
}

KeptFunction::~KeptFunction() {
  if (!maps_.empty()) quiet();
}

std::vector<int> KeptFunction::descriptors() const {
  std::vector<int> all{configuration_.get()};
  for (const Descriptor& one : further_) all.push_back(one.get());
  return all;
}

Result<void> KeptFunction::map(std::uint64_t owner, int fd, std::uint64_t offset, std::uint64_t iova, std::uint64_t bytes) {
  const auto wrong = [&](std::string what) {
    return std::unexpected(Error{"card.dma_memory", std::move(what), address_.text(), ""});
  };
  if (iova % 4096 != 0 || bytes == 0 || iova + bytes < iova)
    return wrong(fmt::format("{} bytes at {:#x} cannot be mapped", bytes, iova));
  for (const Map& map : maps_) {
    const bool mine = group_ != nullptr || map.owner == owner;  // without an IOMMU each owner has its own addresses
    if (mine && iova < map.iova + map.memory.memory().size() && map.iova < iova + bytes)
      return std::unexpected(Error{"card.refused", fmt::format("the address {:#x} is mapped already", iova), address_.text(),
                                   "use another address"});
  }
  auto memory = RODEO_TRY(HeldMemory::hold(fd, offset, bytes, group_ == nullptr));
  if (group_) RODEO_TRY(group_->map(memory.memory(), iova));
  maps_.push_back({owner, iova, std::move(memory)});
  return {};
}

Result<void> KeptFunction::unmap(std::uint64_t owner, std::uint64_t iova, std::uint64_t bytes) {
  const auto found = std::find_if(maps_.begin(), maps_.end(), [&](const Map& map) {
    return map.owner == owner && map.iova == iova && map.memory.memory().size() == bytes;
  });
  if (found == maps_.end())
    return std::unexpected(
        Error{"card.dma_memory", fmt::format("{} bytes at {:#x} were not mapped as one", bytes, iova), address_.text(), ""});
  if (group_) RODEO_TRY(group_->unmap(iova, bytes));
  maps_.erase(found);
  return {};
}

Result<std::vector<PhysicalRun>> KeptFunction::physical(std::uint64_t owner, std::uint64_t iova, std::size_t most) const {
  for (const Map& map : maps_) {
    if (map.owner == owner && iova >= map.iova && iova - map.iova < map.memory.memory().size())
      return map.memory.physical(iova - map.iova, most);
  }
  return std::unexpected(Error{"card.dma_memory", fmt::format("{:#x} is not mapped", iova), address_.text(), ""});
}

void KeptFunction::release(std::uint64_t owner) {
  const bool had = maps(owner) > 0;
  const bool others =
      std::any_of(maps_.begin(), maps_.end(), [&](const Map& map) { return map.owner != owner && map.owner != 0; });
  if (had && !others) quiet();
  for (Map& map : maps_) {
    if (map.owner != owner) continue;
    if (group_) {
      const auto done = group_->unmap(map.iova, map.memory.memory().size());
      if (!done) base::log_error("{}", base::in_a_line(done.error()));
    }
    map.owner = 0;  // no owner: without an IOMMU, DMA of another owner may still write to it
  }
  std::erase_if(maps_, [&](const Map& map) { return map.owner == 0 && (group_ || !others); });
}

std::uint64_t KeptFunction::mapped_bytes(std::uint64_t owner) const {
  std::uint64_t bytes = 0;
  for (const Map& map : maps_) bytes += map.owner == owner ? map.memory.memory().size() : 0;
  return bytes;
}

std::size_t KeptFunction::maps(std::uint64_t owner) const {
  return static_cast<std::size_t>(
      std::count_if(maps_.begin(), maps_.end(), [&](const Map& map) { return map.owner == owner; }));
}

// Switches bus mastering off. The read that follows returns after earlier writes of the card have arrived.
void KeptFunction::quiet() {
  std::uint16_t command = 0;
  const auto at = static_cast<off_t>(configuration_offset_ + PCI_COMMAND);
  if (::pread(configuration_.get(), &command, sizeof command, at) != sizeof command) {
    base::log_error("{}: cannot read the command register: {}", address_.text(), std::strerror(errno));
    return;
  }
  command = static_cast<std::uint16_t>(command & ~PCI_COMMAND_MASTER);
  if (!group_) command |= PCI_COMMAND_INTX_DISABLE;
  if (::pwrite(configuration_.get(), &command, sizeof command, at) != sizeof command ||
      ::pread(configuration_.get(), &command, sizeof command, at) != sizeof command) {
    base::log_error("{}: cannot switch bus mastering off: {}", address_.text(), std::strerror(errno));
  }
  if (group_) detach_interrupts();
}

void KeptFunction::detach_interrupts() {
  for (const unsigned index : {VFIO_PCI_MSIX_IRQ_INDEX, VFIO_PCI_MSI_IRQ_INDEX}) {
    vfio_irq_info info{.argsz = sizeof info, .flags = 0, .index = index, .count = 0};
    if (::ioctl(configuration_.get(), VFIO_DEVICE_GET_IRQ_INFO, &info) != 0 || info.count == 0) continue;
    const std::uint32_t count = std::min(info.count, kMostVectors);
    std::vector<std::int32_t> none(sizeof(vfio_irq_set) / sizeof(std::int32_t) + count, -1);
    vfio_irq_set set{};
    set.argsz = static_cast<std::uint32_t>(none.size() * sizeof(std::int32_t));
    set.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
    set.index = index;
    set.count = count;
    std::memcpy(none.data(), &set, sizeof set);
    if (::ioctl(configuration_.get(), VFIO_DEVICE_SET_IRQS, none.data()) != 0)
      base::log_warning("{}: cannot enable {} interrupts: {}", address_.text(), count, std::strerror(errno));
    return;
  }
}

Result<void> KeptFunction::reset() {
  const std::string path = (function_directory(address_) / "reset").string();
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file && ::write(file.get(), "1", 1) == 1) return {};
  return std::unexpected(Error{"card.reset", fmt::format("cannot reset the card: {}: {}", path, std::strerror(errno)),
                               address_.text(),
                               "a function without a reset of its own is reset with its slot, or by a power cycle"});
}

}  // namespace rodeo::card::pci
