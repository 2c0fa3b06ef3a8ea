#include "card/pci/vfio.h"

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "card/pci/keeper_function.h"

namespace rodeo::card::pci {
namespace {

constexpr std::uint32_t kMostVectors = 32;  // the number that the keeper enables

class VfioFunction final : public KeeperFunction {
 public:
  VfioFunction(const Address& address, std::unique_ptr<KeeperClient> keeper, Descriptor device)
      : KeeperFunction(address, std::move(keeper), true), device_(std::move(device)) {}

  Result<void> examine();

  unsigned interrupts() const override { return vectors_; }
  Result<int> interrupt(unsigned vector) override;
  Result<void> reset() override;

 private:
  std::unexpected<Error> failed(std::string code, std::string what, std::string next = {}) const {
    return std::unexpected(Error{std::move(code), std::move(what), address().text(), std::move(next)});
  }
  Result<void> examine_region(unsigned number);
  int set_interrupt(std::uint32_t vector, std::uint32_t flags, const int* fd) const;

  OwnDescriptor device_;
  OwnMutex mutex_{address().text()};
  unsigned interrupt_index_ = VFIO_PCI_INTX_IRQ_INDEX;
  unsigned vectors_ = 0;
  std::map<unsigned, Descriptor> eventfds_;
};

Result<void> VfioFunction::examine() {
  vfio_device_info device{};
  device.argsz = sizeof device;
  if (::ioctl(device_.get(), VFIO_DEVICE_GET_INFO, &device) != 0)
    return failed("card.driver", fmt::format("the kernel does not describe the device: {}", std::strerror(errno)));
  for (unsigned number = 0; number < std::min(device.num_regions, Regions::kCount); ++number)
    RODEO_TRY(examine_region(number));
  for (const unsigned index : {VFIO_PCI_MSIX_IRQ_INDEX, VFIO_PCI_MSI_IRQ_INDEX, VFIO_PCI_INTX_IRQ_INDEX}) {
    vfio_irq_info info{.argsz = sizeof info, .flags = 0, .index = index, .count = 0};
    if (index >= device.num_irqs || ::ioctl(device_.get(), VFIO_DEVICE_GET_IRQ_INFO, &info) != 0 || info.count == 0)
      continue;
    interrupt_index_ = index;
    vectors_ = std::min(info.count, kMostVectors);
    break;
  }
  return {};
}

Result<void> VfioFunction::examine_region(unsigned number) {
  std::vector<std::byte> room(sizeof(vfio_region_info));
  vfio_region_info info{};
  for (int attempt = 0; attempt < 2; ++attempt) {  // the second with the size that the first reported
    info = {};
    info.argsz = static_cast<std::uint32_t>(room.size());
    info.index = number;
    std::memcpy(room.data(), &info, sizeof info);
    if (::ioctl(device_.get(), VFIO_DEVICE_GET_REGION_INFO, room.data()) != 0) {
      if (errno == EINVAL) return {};  // the region does not exist
      return failed("card.driver", fmt::format("the kernel does not describe region {}: {}", number, std::strerror(errno)));
    }
    std::memcpy(&info, room.data(), sizeof info);
    if (info.argsz <= room.size()) break;
    room.resize(std::min<std::size_t>(info.argsz, 1 << 20));
  }
  FunctionRegion region;
  region.bytes = info.size;
  region.readable = (info.flags & VFIO_REGION_INFO_FLAG_READ) != 0;
  region.writable = (info.flags & VFIO_REGION_INFO_FLAG_WRITE) != 0;
  if ((info.flags & VFIO_REGION_INFO_FLAG_MMAP) != 0) {
    region.mappable.push_back({0, info.size});
    for (std::size_t at = (info.flags & VFIO_REGION_INFO_FLAG_CAPS) != 0 ? info.cap_offset : 0;
         at != 0 && at + sizeof(vfio_info_cap_header) <= room.size();) {
      vfio_info_cap_header header{};
      std::memcpy(&header, room.data() + at, sizeof header);
      vfio_region_info_cap_sparse_mmap sparse{};
      if (header.id == VFIO_REGION_INFO_CAP_SPARSE_MMAP && at + sizeof sparse <= room.size()) {
        std::memcpy(&sparse, room.data() + at, sizeof sparse);
        region.mappable.clear();
        for (std::size_t i = 0; i < sparse.nr_areas; ++i) {
          vfio_region_sparse_mmap_area area{};
          const std::size_t begin = at + sizeof sparse + i * sizeof area;
          if (begin + sizeof area > room.size()) break;
          std::memcpy(&area, room.data() + begin, sizeof area);
          if (area.size > 0 && area.size <= info.size && area.offset <= info.size - area.size)
            region.mappable.push_back({area.offset, area.size});
        }
      }
      if (header.next <= at) break;
      at = header.next;
    }
  }
  regions().add(number, device_.get(), info.offset, std::move(region), false);
  return {};
}

int VfioFunction::set_interrupt(std::uint32_t vector, std::uint32_t flags, const int* fd) const {
  alignas(vfio_irq_set) std::array<std::byte, sizeof(vfio_irq_set) + sizeof(int)> room{};
  vfio_irq_set set{};
  set.argsz = static_cast<std::uint32_t>(sizeof set + (fd != nullptr ? sizeof(int) : 0));
  set.flags = flags;
  set.index = interrupt_index_;
  set.start = vector;
  set.count = 1;
  std::memcpy(room.data(), &set, sizeof set);
  if (fd != nullptr) std::memcpy(room.data() + sizeof set, fd, sizeof(int));
  return ::ioctl(device_.get(), VFIO_DEVICE_SET_IRQS, room.data());
}

Result<int> VfioFunction::interrupt(unsigned vector) {
  if (vector >= vectors_)
    return failed("card.interrupt", fmt::format("there is no interrupt {}: the card has {}", vector, vectors_));
  const auto held = RODEO_TRY(mutex_.hold());
  if (const auto found = eventfds_.find(vector); found != eventfds_.end()) {
    if (interrupt_index_ == VFIO_PCI_INTX_IRQ_INDEX)
      set_interrupt(0, VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_UNMASK, nullptr);
    return found->second.get();
  }
  Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const int fd = event.get();
  if (!event) return failed("card.interrupt", fmt::format("cannot make an eventfd: {}", std::strerror(errno)));
  if (set_interrupt(vector, VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, &fd) != 0)
    return failed("card.interrupt", fmt::format("cannot connect interrupt {}: {}", vector, std::strerror(errno)));
  eventfds_[vector] = std::move(event);
  return fd;
}

Result<void> VfioFunction::reset() {
  const auto held = RODEO_TRY(mutex_.hold());
  if (::ioctl(device_.get(), VFIO_DEVICE_RESET) == 0) return {};
  return failed("card.reset", fmt::format("cannot reset the card: {}", std::strerror(errno)),
                errno == EAGAIN ? "another program is resetting it: try again"
                                : "a function without a reset of its own is reset with its slot, or by a power cycle");
}

}  // namespace

Result<std::unique_ptr<Function>> open_vfio(const Address& address) {
  auto opened =
      RODEO_TRY(KeeperClient::connect_and_ask({.operation = KeeperOperation::open_vfio, .address = address}, true));
  KeeperClient::Answer* const answer = &opened.answer;
  if (answer->descriptors.size() != 1)
    return std::unexpected(Error{"card.keeper", "the keeper did not hand the device over", address.text(), ""});
  auto function = std::make_unique<VfioFunction>(address, std::move(opened.client), std::move(answer->descriptors[0]));
  RODEO_TRY(function->examine());
  return function;
}

}  // namespace rodeo::card::pci
