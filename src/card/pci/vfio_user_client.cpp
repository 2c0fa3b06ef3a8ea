#include "card/pci/vfio_user_client.h"

#include <sys/eventfd.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "card/pci/regions.h"
#include "card/pci/vfio_user_connection.h"

namespace rodeo::card::pci {
namespace {

namespace wire = formats::vfio_user;

constexpr std::uint32_t kMsi = 1;
constexpr std::uint32_t kMsix = 2;
constexpr std::uint64_t kCommandRegister = 4;
constexpr std::uint16_t kBusMaster = 1U << 2;
constexpr std::chrono::milliseconds kResetPatience{10'000};

class VfioUserFunction final : public Function {
 public:
  VfioUserFunction(VfioUserConnection connection, const Address& address)
      : address_(address), connection_(std::move(connection)) {}

  Result<void> begin();

  const Address& address() const override { return address_; }
  Capabilities capabilities() const override { return capabilities_of(BackEnd::vfio_user); }

  Result<FunctionRegion> region(unsigned number) const override { return regions_.info(number); }

  Result<void> read(unsigned number, std::uint64_t offset, std::span<std::byte> bytes) override {
    RODEO_TRY(regions_.check(number, offset, bytes.size(), false));
    const auto held = RODEO_TRY(mutex_.hold());
    return read_locked(number, offset, bytes);
  }

  Result<void> write(unsigned number, std::uint64_t offset, std::span<const std::byte> bytes) override {
    RODEO_TRY(regions_.check(number, offset, bytes.size(), true));
    const auto held = RODEO_TRY(mutex_.hold());
    return write_locked(number, offset, bytes);
  }

  Result<void> exchange(std::span<RegionOperation> operations) override {
    for (const RegionOperation& operation : operations)
      RODEO_TRY(regions_.check(operation.region, operation.offset, operation.bytes, operation.write));
    const auto held = RODEO_TRY(mutex_.hold());
    return connection_.exchange(operations);
  }

  Result<MappedRegisters> map(unsigned number, MappableRange range) override { return regions_.map(number, range); }

  Result<void> dma_map(std::span<std::byte> memory, int fd, std::uint64_t fd_offset, std::uint64_t iova) override;
  Result<void> dma_unmap(std::uint64_t iova, std::uint64_t bytes) override;
  bool translates() const override { return true; }
  Result<std::pair<std::uint64_t, std::uint64_t>> bus_address(std::uint64_t iova) const override;

  unsigned interrupts() const override { return vectors_; }
  Result<int> interrupt(unsigned vector) override;

  void hurry() override { connection_.hurry(); }

  Result<void> reset() override {
    const auto held = RODEO_TRY(mutex_.hold());
    RODEO_TRY(connection_.ask(wire::DeviceReset{}, std::chrono::steady_clock::now() + kResetPatience));
    return {};
  }

  Result<void> set_bus_master(bool on) override {
    const auto held = RODEO_TRY(mutex_.hold());
    std::uint16_t command = 0;
    RODEO_TRY(read_locked(kConfigurationRegion, kCommandRegister, std::as_writable_bytes(std::span(&command, 1))));
    command = static_cast<std::uint16_t>(on ? command | kBusMaster : command & ~kBusMaster);
    return write_locked(kConfigurationRegion, kCommandRegister, std::as_bytes(std::span(&command, 1)));
  }

 private:
  Result<void> read_locked(unsigned number, std::uint64_t offset, std::span<std::byte> bytes) {
    const wire::RegionAccess access{.offset = offset, .region = number, .count = static_cast<std::uint32_t>(bytes.size())};
    const auto answer = RODEO_TRY(connection_.ask(wire::RegionRead{access}));
    const auto data = wire::decode_region_data(answer.payload);
    if (!data || data->size() != bytes.size())
      return std::unexpected(Error{"card.protocol",
                                   fmt::format("the card answered a read of {} bytes with other bytes", bytes.size()),
                                   address_.text()});
    std::memcpy(bytes.data(), data->data(), bytes.size());
    return {};
  }

  Result<void> write_locked(unsigned number, std::uint64_t offset, std::span<const std::byte> bytes) {
    const wire::RegionAccess access{.offset = offset, .region = number, .count = static_cast<std::uint32_t>(bytes.size())};
    RODEO_TRY(connection_.ask(wire::RegionWrite{access, bytes}));
    return {};
  }

  using Deadline = VfioUserConnection::Deadline;
  Result<void> ask_region(unsigned number, Deadline deadline);
  Result<unsigned> ask_vectors(std::uint32_t index, Deadline deadline);

  const Address address_;
  mutable OwnMutex mutex_{address_.text()};
  VfioUserConnection connection_;
  std::vector<base::UniqueFd> files_;  // files behind regions that can be mapped
  Regions regions_{address_.text()};
  std::map<std::uint64_t, std::uint64_t> dma_;  // iova, bytes
  std::uint32_t irq_index_ = kMsi;
  unsigned vectors_ = 0;
  std::map<unsigned, base::UniqueFd> eventfds_;
};

Result<void> VfioUserFunction::begin() {
  const Deadline deadline = connection_.from_now();
  RODEO_TRY(connection_.negotiate(deadline));
  const auto answer = RODEO_TRY(connection_.ask(wire::DeviceInfo{}, deadline));
  const auto device = wire::decode_device_info(answer.payload);
  if (!device) return std::unexpected(Error{"card.protocol", "the card's description is too short", address_.text()});
  for (unsigned number = 0; number < std::min(Regions::kCount, device->regions); ++number)
    RODEO_TRY(ask_region(number, deadline));
  for (const std::uint32_t index : {kMsix, kMsi}) {
    if (index >= device->irqs) continue;
    const auto count = RODEO_TRY(ask_vectors(index, deadline));
    if (count == 0) continue;
    irq_index_ = index;
    vectors_ = count;
    break;
  }
  connection_.opened();
  return {};
}

Result<void> VfioUserFunction::ask_region(unsigned number, Deadline deadline) {
  wire::RegionInfo request;
  request.index = number;
  request.argsz = wire::region_info_bytes(16);
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto answer = RODEO_TRY(connection_.ask(request, deadline));
    const auto reply = wire::decode_region_info(answer.payload);
    if (!reply || reply->info.index != number)
      return std::unexpected(Error{
          "card.protocol", fmt::format("the card's description of region {} cannot be read", number), address_.text()});
    if (reply->info.argsz > request.argsz && attempt == 0) {
      request.argsz = std::min<std::uint32_t>(reply->info.argsz, 8192);
      continue;
    }
    FunctionRegion region{.bytes = reply->info.size,
                          .readable = (reply->info.flags & wire::RegionInfo::kRead) != 0,
                          .writable = (reply->info.flags & wire::RegionInfo::kWrite) != 0,
                          .mappable = {}};
    int fd = -1;
    struct stat file{};
    if ((reply->info.flags & wire::RegionInfo::kMmap) != 0 && !answer.fds.empty() &&
        ::fstat(answer.fds.front().get(), &file) == 0 && S_ISREG(file.st_mode)) {
      fd = files_.emplace_back(std::move(answer.fds.front())).get();
      const std::vector<wire::Area> whole{{0, region.bytes}};
      for (const wire::Area& area : reply->areas ? *reply->areas : whole) {
        if (area.size > 0 && area.offset <= region.bytes && area.size <= region.bytes - area.offset)
          region.mappable.push_back({area.offset, area.size});
      }
    }
    regions_.add(number, fd, reply->info.offset, std::move(region), false);
    return {};
  }
  return {};
}

Result<unsigned> VfioUserFunction::ask_vectors(std::uint32_t index, Deadline deadline) {
  const auto answer = RODEO_TRY(connection_.ask(wire::IrqInfo{.index = index}, deadline));
  const auto reply = wire::decode_irq_info(answer.payload);
  if (!reply)
    return std::unexpected(Error{"card.protocol", "the card's description of its interrupts is too short", address_.text()});
  return (reply->flags & wire::IrqInfo::kEventfd) != 0 ? std::min(reply->count, 2048U) : 0U;
}

Result<void> VfioUserFunction::dma_map(std::span<std::byte> memory, int fd, std::uint64_t fd_offset, std::uint64_t iova) {
  if (fd < 0)
    return std::unexpected(Error{"card.dma_memory", "an emulated card can only reach memory that has a file behind it",
                                 address_.text(), "take the buffer from memfd_create, hugetlbfs or /dev/shm"});
  if (memory.empty() || memory.size() % 4096 != 0 || iova % 4096 != 0 || fd_offset % 4096 != 0)
    return std::unexpected(Error{
        "card.dma_memory", fmt::format("{} bytes for I/O address {:#x} are not whole 4 KiB pages", memory.size(), iova),
        address_.text()});
  const wire::DmaMap request{
      .flags = wire::DmaMap::kRead | wire::DmaMap::kWrite, .offset = fd_offset, .address = iova, .size = memory.size()};
  const auto held = RODEO_TRY(mutex_.hold());
  RODEO_TRY(connection_.ask(request, std::span(&fd, 1)));
  dma_[iova] = memory.size();
  return {};
}

Result<void> VfioUserFunction::dma_unmap(std::uint64_t iova, std::uint64_t bytes) {
  const auto held = RODEO_TRY(mutex_.hold());
  RODEO_TRY(connection_.ask(wire::DmaUnmap{.address = iova, .size = bytes}));
  std::erase_if(dma_, [&](const auto& map) { return map.first >= iova && map.first - iova < bytes; });
  return {};
}

Result<std::pair<std::uint64_t, std::uint64_t>> VfioUserFunction::bus_address(std::uint64_t iova) const {
  const auto held = RODEO_TRY(mutex_.hold());
  auto map = dma_.upper_bound(iova);
  if (map == dma_.begin() || iova - std::prev(map)->first >= std::prev(map)->second)
    return std::unexpected(
        Error{"card.dma_memory", fmt::format("no memory is mapped at I/O address {:#x}", iova), address_.text()});
  --map;
  return std::pair{iova, map->second - (iova - map->first)};
}

Result<int> VfioUserFunction::interrupt(unsigned vector) {
  if (vector >= vectors_)
    return std::unexpected(Error{
        "card.bad_access", fmt::format("there is no interrupt {}: the card has {}", vector, vectors_), address_.text()});
  const auto held = RODEO_TRY(mutex_.hold());
  if (const auto known = eventfds_.find(vector); known != eventfds_.end()) return known->second.get();
  base::UniqueFd eventfd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!eventfd)
    return std::unexpected(
        Error{"card.map", fmt::format("cannot make an eventfd: {}", std::strerror(errno)), address_.text()});
  const wire::SetIrqs request{
      .flags = wire::SetIrqs::kDataEventfd | wire::SetIrqs::kTrigger, .index = irq_index_, .start = vector, .count = 1};
  const int fd = eventfd.get();
  RODEO_TRY(connection_.ask(request, std::span(&fd, 1)));
  eventfds_.emplace(vector, std::move(eventfd));
  return fd;
}

}  // namespace

Result<std::unique_ptr<Function>> open_vfio_user(const std::filesystem::path& socket, const Address& address,
                                                 const VfioUserSettings& settings) {
  auto connected = base::connect_unix(socket, settings.patience);
  if (!connected) {
    Error error = connected.error();
    if (error.code == "base.socket") {  // other errors are faults of this process, not of the card
      error.code = "card.gone";
      error.next = "see whether the emulator still runs; `rodeo card cleanup` shows the remains of dead emulators";
    }
    return std::unexpected(error.within(fmt::format("cannot reach the card {}", address.text())));
  }
  return open_vfio_user(std::move(*connected), socket.native(), address, settings);
}

Result<std::unique_ptr<Function>> open_vfio_user(base::UniqueFd socket, const std::string& name, const Address& address,
                                                 const VfioUserSettings& settings) {
  auto function = std::make_unique<VfioUserFunction>(VfioUserConnection(std::move(socket), name, settings), address);
  RODEO_TRY_WITHIN(function->begin(), fmt::format("cannot open the card {}", address.text()));
  return function;
}

}  // namespace rodeo::card::pci
