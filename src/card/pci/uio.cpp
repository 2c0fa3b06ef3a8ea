#include "card/pci/uio.h"

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "base/thread.h"
#include "card/pci/keeper_client.h"
#include "card/pci/keeper_memory.h"
#include "card/pci/regions.h"

namespace rodeo::card::pci {
namespace {

/// Turns what can be read from /dev/uioN, a 32-bit count, into counts of an eventfd.
class InterruptBridge {
 public:
  InterruptBridge(int node, Descriptor event, Descriptor stop) : event_(std::move(event)), stop_(std::move(stop)) {
    thread_ = std::thread([this, node] {
      base::set_thread_name("card-interrupt");
      std::uint32_t last = 0;
      bool first = true;
      while (true) {
        std::array<pollfd, 2> ready{{{node, POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
        if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) return;
        if (ready[1].revents != 0) return;
        std::uint32_t count = 0;
        if (ready[0].revents == 0 || ::read(node, &count, sizeof count) != sizeof count) {
          if ((ready[0].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return;  // the driver has let the card go
          continue;
        }
        const std::uint64_t more = first ? 1 : count - last;
        first = false;
        last = count;
        [[maybe_unused]] const ssize_t written = ::write(event_.get(), &more, sizeof more);
      }
    });
  }
  ~InterruptBridge() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }
  int event() const { return event_.get(); }

 private:
  Descriptor event_;
  Descriptor stop_;
  std::thread thread_;
};

class UioFunction final : public Function {
 public:
  UioFunction(const Address& address, std::unique_ptr<KeeperClient> keeper, std::vector<Descriptor> files)
      : address_(address),
        keeper_(std::move(keeper)),
        files_(std::move(files)),
        regions_(address.text()),
        memory_(*keeper_, true) {}
  ~UioFunction() override {
    if (bridge_) (void)regions_.change_command(PCI_COMMAND_INTX_DISABLE, 0);
  }

  Result<void> examine(std::uint64_t resources);

  const Address& address() const override { return address_; }
  BackEnd back_end() const override { return BackEnd::uio; }
  Result<RegionInfo> region(unsigned number) const override { return regions_.info(number); }
  Result<void> read(unsigned number, std::uint64_t offset, std::span<std::byte> bytes) override {
    return regions_.read(number, offset, bytes);
  }
  Result<void> write(unsigned number, std::uint64_t offset, std::span<const std::byte> bytes) override {
    return regions_.write(number, offset, bytes);
  }
  Result<void> post(std::span<const RegionWrite> writes) override {
    for (const RegionWrite& one : writes) {
      auto done = regions_.write(one.region, one.offset,
                                 std::as_bytes(std::span(&one.value, 1)).first(std::min<std::size_t>(one.bytes, 8)));
      if (!done) return done;
    }
    return {};
  }
  Result<std::span<std::byte>> map(unsigned number, MappableRange range) override { return regions_.map(number, range); }
  Result<void> dma_map(std::span<std::byte> memory, int fd, std::uint64_t fd_offset, std::uint64_t iova) override {
    return memory_.map(memory, fd, fd_offset, iova);
  }
  Result<void> dma_unmap(std::uint64_t iova, std::uint64_t bytes) override { return memory_.unmap(iova, bytes); }
  Result<LockNode> lock_node() override { return keeper_->lock_node(); }
  bool translates() const override { return false; }
  Result<std::pair<std::uint64_t, std::uint64_t>> bus_address(std::uint64_t iova) const override {
    return memory_.bus_address(iova);
  }
  unsigned interrupts() const override { return 1; }
  Result<int> interrupt(unsigned vector) override;
  Result<void> reset() override {
    KeeperRequest request;
    request.operation = KeeperOperation::reset;
    const auto answer = keeper_->ask(request);
    return answer ? Result<void>{} : std::unexpected(answer.error());
  }
  Result<void> set_bus_master(bool on) override {
    return regions_.change_command(on ? PCI_COMMAND_MASTER : 0, on ? 0 : PCI_COMMAND_MASTER);
  }

 private:
  const Address address_;
  std::unique_ptr<KeeperClient> keeper_;
  std::vector<Descriptor> files_;  // configuration space, node, resources
  Regions regions_;
  KeeperMemory memory_;
  std::mutex interrupt_mutex_;
  std::unique_ptr<InterruptBridge> bridge_;
};

Result<void> UioFunction::examine(std::uint64_t resources) {
  constexpr unsigned kResources = 6;
  if (resources >> kResources != 0 || files_.size() != 2 + static_cast<std::size_t>(std::popcount(resources)))
    return std::unexpected(Error{"card.keeper", "the keeper did not hand the card over", address_.text(), ""});
  const auto size = [](const Descriptor& file) {
    struct stat found{};
    return ::fstat(file.get(), &found) == 0 && found.st_size > 0 ? static_cast<std::uint64_t>(found.st_size) : 0;
  };
  regions_.add(kConfigurationRegion, files_[0].get(), 0, RegionInfo{size(files_[0]), true, true, {}}, false);
  std::size_t file = 2;
  for (unsigned number = 0; number < kResources; ++number) {
    if ((resources >> number & 1) == 0) continue;
    const std::uint64_t bytes = size(files_[file]);
    regions_.add(number, files_[file].get(), 0, RegionInfo{bytes, true, true, {{0, bytes}}}, true);
    ++file;
  }
  return {};
}

Result<int> UioFunction::interrupt(unsigned vector) {
  if (vector != 0)
    return std::unexpected(
        Error{"card.interrupt", fmt::format("there is no interrupt {}: UIO has one", vector), address_.text(), ""});
  const std::lock_guard lock(interrupt_mutex_);
  if (!bridge_) {
    Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    Descriptor stop(::eventfd(0, EFD_CLOEXEC));
    if (!event || !stop)
      return std::unexpected(
          Error{"card.interrupt", fmt::format("cannot make an eventfd: {}", std::strerror(errno)), address_.text(), ""});
    bridge_ = std::make_unique<InterruptBridge>(files_[1].get(), std::move(event), std::move(stop));
  }
  if (auto armed = regions_.change_command(0, PCI_COMMAND_INTX_DISABLE); !armed) return std::unexpected(armed.error());
  return bridge_->event();
}

}  // namespace

Result<std::unique_ptr<Function>> open_uio(const Address& address) {
  KeeperRequest request;
  request.operation = KeeperOperation::open_uio;
  request.address = address;
  auto opened = KeeperClient::connect_and_ask(request, true);
  if (!opened) return std::unexpected(opened.error());
  KeeperClient::Answer* const answer = &opened->answer;
  auto function = std::make_unique<UioFunction>(address, std::move(opened->client), std::move(answer->descriptors));
  if (auto done = function->examine(answer->reply.value); !done) return std::unexpected(done.error());
  return function;
}

}  // namespace rodeo::card::pci
