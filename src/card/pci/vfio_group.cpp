#include "card/pci/vfio_group.h"

#include <fcntl.h>
#include <linux/vfio.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/units.h"
#include "card/pci/sysfs.h"

namespace rodeo::card::pci {
namespace {

std::unexpected<Error> failed(std::string code, std::string what, std::string where, std::string next) {
  return std::unexpected(Error{std::move(code), std::move(what), std::move(where), std::move(next)});
}

std::unexpected<Error> cannot_open(const std::string& path, unsigned group, int why) {
  const std::string what = fmt::format("cannot open {}: {}", path, std::strerror(why));
  if (why == EBUSY) {
    return failed(
        "card.held", fmt::format("IOMMU group {} is open in another process", group), path,
        fmt::format(
            "`sudo fuser -v {}` names the process: a virtual machine, another driver, or a program that still uses the card "
            "since an earlier keeper",
            path));
  }
  if (why == EACCES || why == EPERM) {
    return failed("card.permission", what, path,
                  fmt::format("run the keeper as root (`sudo rodeo card keep`), or give the node to your group: sudo chown "
                              "root:$(id -gn) {0}; sudo chmod g+rw {0}",
                              path));
  }
  if (path == "/dev/vfio/vfio" && why == ENOENT && ::access("/dev/iommu", F_OK) == 0)
    return failed("card.driver", "this kernel has iommufd but no VFIO container, which the driver needs", path,
                  "a kernel with CONFIG_VFIO_CONTAINER or CONFIG_IOMMUFD_VFIO_CONTAINER (docs/how-to/cards-on-a-host.md)");
  if (why == ENOENT || why == ENODEV)
    return failed("card.driver", what, path, "sudo modprobe vfio-pci vfio_iommu_type1, and bind the card to vfio-pci");
  return failed("card.driver", what, path, "");
}

/// Devices of the group with another driver than vfio-pci: while any exists, the kernel does not open the group.
std::string devices_in_use(unsigned group) {
  std::string names;
  for (const Address& address : functions_of_group(group)) {
    const auto function = find_function(address);
    if (function && !function->driver.empty() && function->driver != "vfio-pci" && function->driver != "pcieport")
      names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", address.text(), function->driver);
  }
  return names;
}

}  // namespace

Result<VfioGroup> VfioGroup::open(unsigned number) {
  const std::string path = fmt::format("/dev/vfio/{}", number);
  Descriptor container(::open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC));
  if (!container) return cannot_open("/dev/vfio/vfio", number, errno);
  if (::ioctl(container.get(), VFIO_GET_API_VERSION) != VFIO_API_VERSION)
    return failed("card.driver", "the kernel speaks another version of VFIO", "/dev/vfio/vfio", "");
  if (::ioctl(container.get(), VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU) != 1)
    return failed("card.driver", "the kernel has no type 1 IOMMU driver for VFIO", "/dev/vfio/vfio",
                  "sudo modprobe vfio_iommu_type1");
  Descriptor group(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!group) return cannot_open(path, number, errno);
  vfio_group_status status{.argsz = sizeof status, .flags = 0};
  if (::ioctl(group.get(), VFIO_GROUP_GET_STATUS, &status) != 0)
    return failed("card.driver", fmt::format("cannot read the state of the group: {}", std::strerror(errno)), path, "");
  if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0) {
    return failed(
        "card.driver",
        fmt::format("the group cannot be used: the kernel uses these devices of it: {}", devices_in_use(number)), path,
        "bind all devices of the group to vfio-pci, or unbind them; a card in a slot of its own has a group of its own");
  }
  const int container_fd = container.get();
  if (::ioctl(group.get(), VFIO_GROUP_SET_CONTAINER, &container_fd) != 0)
    return failed("card.driver", fmt::format("the group cannot join a container: {}", std::strerror(errno)), path, "");
  if (::ioctl(container.get(), VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) != 0) {
    const int why = errno;
    return failed(
        "card.no_iommu", fmt::format("the IOMMU refuses the group: {}", std::strerror(why)), path,
        why == EPERM
            ? "the platform cannot remap interrupts; vfio_iommu_type1.allow_unsafe_interrupts=1 allows it nevertheless"
            : "`dmesg | grep -e DMAR -e AMD-Vi` has the kernel's reason");
  }
  return VfioGroup(number, std::move(container), std::move(group));
}

Result<Descriptor> VfioGroup::device(const Address& address) const {
  Descriptor device(::ioctl(group_.get(), VFIO_GROUP_GET_DEVICE_FD, address.text().c_str()));
  if (!device) {
    return failed("card.driver", fmt::format("the kernel does not hand the device out: {}", std::strerror(errno)),
                  address.text(),
                  "`dmesg | tail` has the kernel's reason; a card that does not answer needs a reset or a power cycle");
  }
  return device;
}

std::string VfioGroup::usable_ranges() const {
  std::vector<std::byte> room(4096);
  auto* info = reinterpret_cast<vfio_iommu_type1_info*>(room.data());
  info->argsz = static_cast<std::uint32_t>(room.size());
  if (::ioctl(container_.get(), VFIO_IOMMU_GET_INFO, info) != 0 || (info->flags & VFIO_IOMMU_INFO_CAPS) == 0) return {};
  std::string text;
  for (std::size_t at = info->cap_offset; at != 0 && at + sizeof(vfio_info_cap_header) <= room.size();) {
    vfio_info_cap_header header{};
    std::memcpy(&header, room.data() + at, sizeof header);
    if (header.id == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE) {
      vfio_iommu_type1_info_cap_iova_range ranges{};
      std::memcpy(&ranges, room.data() + at, sizeof ranges);
      for (std::size_t i = 0; i < ranges.nr_iovas; ++i) {
        vfio_iova_range range{};
        const std::size_t begin = at + sizeof ranges + i * sizeof range;
        if (begin + sizeof range > room.size()) break;
        std::memcpy(&range, room.data() + begin, sizeof range);
        text += fmt::format("{}{:#x}-{:#x}", text.empty() ? "" : ", ", range.start, range.end);
      }
    }
    if (header.next <= at) break;
    at = header.next;
  }
  return text;
}

Result<void> VfioGroup::map(std::span<std::byte> memory, std::uint64_t iova) {
  vfio_iommu_type1_dma_map map{.argsz = sizeof map,
                               .flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
                               .vaddr = reinterpret_cast<std::uintptr_t>(memory.data()),
                               .iova = iova,
                               .size = memory.size()};
  if (::ioctl(container_.get(), VFIO_IOMMU_MAP_DMA, &map) == 0) return {};
  const int why = errno;
  const std::string what =
      fmt::format("cannot make {} visible to the card at {:#x}: ", base::format_size(memory.size()), iova);
  const std::string where = fmt::format("IOMMU group {}", number_);
  if (why == ENOMEM) {
    rlimit limit{};
    ::getrlimit(RLIMIT_MEMLOCK, &limit);
    return failed("card.memlock",
                  what + (limit.rlim_cur == RLIM_INFINITY
                              ? std::string("the kernel has no memory left to lock it")
                              : fmt::format("the keeper may lock {} of memory", base::format_size(limit.rlim_cur))),
                  where,
                  "run the keeper as root, or raise its limit: echo '* - memlock unlimited' | sudo tee -a "
                  "/etc/security/limits.d/rodeo.conf, and log in anew");
  }
  if (why == EEXIST)
    return failed("card.refused", what + "that address is mapped already, perhaps by another process of this group", where,
                  "use another address; cards in groups of their own do not share addresses");
  if (why == EINVAL)
    return failed("card.dma_memory", what + "the IOMMU does not translate this address, or it is not aligned", where,
                  fmt::format("usable: {}", usable_ranges()));
  if (why == EFAULT)
    return failed("card.dma_memory", what + "there is no memory behind a part of it", where,
                  "give the file its full size first");
  return failed("card.dma_memory", what + std::strerror(why), where, "");
}

Result<std::uint64_t> VfioGroup::unmap(std::uint64_t iova, std::uint64_t bytes) {
  vfio_iommu_type1_dma_unmap unmap{};
  unmap.argsz = sizeof unmap;
  unmap.iova = iova;
  unmap.size = bytes;
  if (::ioctl(container_.get(), VFIO_IOMMU_UNMAP_DMA, &unmap) != 0)
    return failed("card.dma_memory", fmt::format("cannot remove the map at {:#x}: {}", iova, std::strerror(errno)),
                  fmt::format("IOMMU group {}", number_), "");
  return unmap.size;
}

}  // namespace rodeo::card::pci
