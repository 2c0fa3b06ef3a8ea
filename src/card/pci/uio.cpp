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
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "base/thread.h"
#include "card/pci/keeper_function.h"

namespace rodeo::card::pci {
namespace {

/// Turns the 32-bit count of /dev/uioN into counts of an eventfd.
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
          if ((ready[0].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return;  // the driver has released the card
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
    if (!owner_.here()) {  // the thread exists only in the parent: it cannot be joined here
      (void)std::make_unique<std::thread>(std::move(thread_)).release();
      return;  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): a thread that cannot be joined must not be destroyed
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }
  int event() const { return event_.get(); }

 private:
  Descriptor event_;
  Descriptor stop_;
  OwnerProcess owner_;
  std::thread thread_;
};

class UioFunction final : public KeeperFunction {
 public:
  UioFunction(const Address& address, std::unique_ptr<KeeperClient> keeper, std::vector<Descriptor> files)
      : KeeperFunction(address, std::move(keeper), false) {
    for (Descriptor& file : files) files_.emplace_back(std::move(file));
  }
  ~UioFunction() override {
    if (bridge_) (void)regions().change_command(PCI_COMMAND_INTX_DISABLE, 0);
  }

  Result<void> examine(std::uint64_t resources);

  unsigned interrupts() const override { return 1; }
  Result<int> interrupt(unsigned vector) override;
  Result<void> reset() override {
    const auto answer = keeper().ask({.operation = KeeperOperation::reset});
    return answer ? Result<void>{} : std::unexpected(answer.error());
  }

 private:
  std::vector<OwnDescriptor> files_;  // configuration space, node, resources
  OwnMutex mutex_{address().text()};
  std::unique_ptr<InterruptBridge> bridge_;
};

Result<void> UioFunction::examine(std::uint64_t resources) {
  constexpr unsigned kResources = 6;
  if (resources >> kResources != 0 || files_.size() != 2 + static_cast<std::size_t>(std::popcount(resources)))
    return std::unexpected(Error{"card.keeper", "the keeper did not hand the card over", address().text(), ""});
  const auto size = [](const OwnDescriptor& file) {
    struct stat found{};
    return ::fstat(file.get(), &found) == 0 && found.st_size > 0 ? static_cast<std::uint64_t>(found.st_size) : 0;
  };
  regions().add(kConfigurationRegion, files_[0].get(), 0, FunctionRegion{size(files_[0]), true, true, {}}, false);
  std::size_t file = 2;
  for (unsigned number = 0; number < kResources; ++number) {
    if ((resources >> number & 1) == 0) continue;
    const std::uint64_t bytes = size(files_[file]);
    regions().add(number, files_[file].get(), 0, FunctionRegion{bytes, true, true, {{0, bytes}}}, true);
    ++file;
  }
  return {};
}

Result<int> UioFunction::interrupt(unsigned vector) {
  if (vector != 0)
    return std::unexpected(
        Error{"card.interrupt", fmt::format("there is no interrupt {}: UIO has one", vector), address().text(), ""});
  const auto held = RODEO_TRY(mutex_.hold());
  if (!bridge_) {
    Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    Descriptor stop(::eventfd(0, EFD_CLOEXEC));
    if (!event || !stop)
      return std::unexpected(
          Error{"card.interrupt", fmt::format("cannot make an eventfd: {}", std::strerror(errno)), address().text(), ""});
    bridge_ = std::make_unique<InterruptBridge>(files_[1].get(), std::move(event), std::move(stop));
  }
  RODEO_TRY(regions().change_command(0, PCI_COMMAND_INTX_DISABLE));
  return bridge_->event();
}

}  // namespace

Result<std::unique_ptr<Function>> open_uio(const Address& address) {
  auto opened = RODEO_TRY(KeeperClient::connect_and_ask({.operation = KeeperOperation::open_uio, .address = address}, true));
  KeeperClient::Answer* const answer = &opened.answer;
  auto function = std::make_unique<UioFunction>(address, std::move(opened.client), std::move(answer->descriptors));
  RODEO_TRY(function->examine(answer->reply.value));
  return function;
}

}  // namespace rodeo::card::pci
