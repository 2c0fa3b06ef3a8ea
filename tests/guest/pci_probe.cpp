// Runs in a guest: QEMU's edu device through the PCI back ends and the keeper. Prints a line for each fact, "ok NAME: ..."
// or "FAILED NAME: ...".
//
//   pci_probe vfio|uio ADDRESS             all checks; it starts further processes of this program
//   pci_probe registers vfio|uio ADDRESS [elsewhere]
//                                          a second process: identification, liveness, a channel owned by another process
//   pci_probe die vfio|uio ADDRESS         maps memory, enables bus mastering, prints "mapped" and waits to be killed
#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <linux/pci_regs.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "card/pci/keeper.h"
#include "card/pci/keeper_client.h"
#include "card/pci/lock.h"
#include "card/pci/uio.h"
#include "card/pci/vfio.h"

namespace rodeo::card::pci {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// docs/specs/edu.rst of QEMU
constexpr std::uint64_t kIdentification = 0x00, kLiveness = 0x04, kFactorial = 0x08, kStatus = 0x20, kInterruptStatus = 0x24,
                        kRaise = 0x60, kAcknowledge = 0x64, kSource = 0x80, kDestination = 0x88, kCount = 0x90,
                        kCommand = 0x98;
constexpr std::uint64_t kBuffer = 0x40000;
constexpr std::uint64_t kStart = 1, kToMemory = 2, kInterrupt = 4;
constexpr std::uint32_t kDmaInterrupt = 0x100;
constexpr std::uint64_t kDmaBytes = 4092;  // QEMU 7.2 aborts on 4096
constexpr std::size_t kHugePage = std::size_t{2} << 20;

int failures = 0;

template <typename T>
T need(Result<T> result, std::string_view name) {
  if (!result) {
    fmt::print("FAILED {}: {}\n", name, result.error().message());
    std::fflush(stdout);
    std::_Exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

void expect(bool good, std::string_view name, const std::string& value = {}) {
  fmt::print("{} {}: {}\n", good ? "ok" : "FAILED", name, value);
  std::fflush(stdout);
  failures += good ? 0 : 1;
}

/// A call that must be refused with this code.
template <typename T>
void expect_refused(const Result<T>& result, std::string_view code, std::string_view name) {
  expect(!result && result.error().code == code, name, result ? "it was not refused" : result.error().message());
}

struct Edu {
  std::unique_ptr<Function> function;

  template <typename T = std::uint32_t>
  T get(std::uint64_t offset) {
    T value{};
    need(function->read(0, offset, std::as_writable_bytes(std::span(&value, 1))), "read");
    return value;
  }
  template <typename T = std::uint32_t>
  void set(std::uint64_t offset, T value) {
    need(function->write(0, offset, std::as_bytes(std::span(&value, 1))), "write");
  }
  bool wait(const std::function<bool()>& done) {
    const auto until = Clock::now() + milliseconds{20'000};
    while (!done()) {
      if (Clock::now() > until) return false;
      std::this_thread::sleep_for(milliseconds{1});
    }
    return true;
  }
  bool transfer(std::uint64_t from, std::uint64_t to, std::uint64_t flags) {
    set<std::uint64_t>(kSource, from);
    set<std::uint64_t>(kDestination, to);
    set<std::uint64_t>(kCount, kDmaBytes);
    set<std::uint64_t>(kCommand, kStart | flags);
    return wait([&] { return (get<std::uint64_t>(kCommand) & kStart) == 0; });
  }
};

struct HugeMemory {
  int fd = -1;
  std::span<std::byte> bytes;

  explicit HugeMemory(std::size_t size) {
    fd = ::memfd_create("probe", MFD_CLOEXEC | MFD_HUGETLB);
    void* memory = MAP_FAILED;
    if (fd >= 0 && ::ftruncate(fd, static_cast<off_t>(size)) == 0)
      memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED) {
      fmt::print("FAILED huge pages: {}\n", std::strerror(errno));
      std::_Exit(1);
    }
    bytes = {static_cast<std::byte*>(memory), size};
  }
};

std::byte pattern(std::size_t at) { return static_cast<std::byte>((at * 167 + at / 251) & 0xff); }

Edu open_edu(bool uio, const Address& address) { return {need(uio ? open_uio(address) : open_vfio(address), "open")}; }

void registers(Edu& edu) {
  expect(edu.get(kIdentification) == 0x010000ed, "identification", fmt::format("{:#010x}", edu.get(kIdentification)));
  edu.set(kLiveness, 0x12345678);
  expect(edu.get(kLiveness) == ~0x12345678U, "liveness", fmt::format("{:#010x}", edu.get(kLiveness)));
}

void regions(Edu& edu) {
  const FunctionRegion bar = need(edu.function->region(0), "region");
  expect(bar.bytes == 1 << 20 && bar.readable && bar.writable && bar.mappable.size() == 1, "region",
         fmt::format("{} bytes", bar.bytes));
  expect(need(edu.function->region(1), "region 1").bytes == 0, "absent region", "0 bytes");
  std::uint16_t vendor = 0;
  need(edu.function->read(kConfigurationRegion, PCI_VENDOR_ID, std::as_writable_bytes(std::span(&vendor, 1))),
       "configuration space");
  expect(vendor == 0x1234, "configuration space", fmt::format("vendor {:04x}", vendor));
  std::array<std::byte, 4> word{};
  expect_refused(edu.function->read(0, 1 << 20, word), "card.bad_access", "read behind the end");
  expect_refused(edu.function->read(0, 2, word), "card.bad_access", "read across a word");
  expect_refused(edu.function->read(1, 0, word), "card.bad_access", "read of an absent region");
  edu.set(kFactorial, 10);
  expect(edu.wait([&] { return (edu.get(kStatus) & 1) == 0; }) && edu.get(kFactorial) == 3628800, "factorial",
         fmt::format("{}", edu.get(kFactorial)));
  std::array<RegionOperation, 2> batch{{{0, kLiveness, 4, true, 1}, {0, kLiveness, 4, true, 2}}};
  need(edu.function->exchange(batch), "writes in one go");
  expect(edu.get(kLiveness) == ~2U, "posted writes", "in order");
  const auto window = need(edu.function->map(0, {0, 4096}), "map");
  expect(window.at<std::uint32_t>(0).load() == 0x010000ed, "mapped register", "as read");
}

bool counted(int event) {
  pollfd ready{event, POLLIN, 0};
  std::uint64_t count = 0;
  return ::poll(&ready, 1, 20'000) == 1 && ::read(event, &count, sizeof count) == sizeof count && count >= 1;
}

void interrupts(Edu& edu) {
  const unsigned count = edu.function->interrupts();
  expect(count == 1, "interrupts", fmt::format("{}", count));
  expect_refused(edu.function->interrupt(count), "card.interrupt", "an interrupt too many");
  const int event = need(edu.function->interrupt(0), "interrupt");
  for (const std::uint32_t value : {1U, 2U}) {
    need(edu.function->interrupt(0), "arm");
    edu.set(kRaise, value);
    const bool came = counted(event);
    expect(came && edu.get(kInterruptStatus) == value, "interrupt", fmt::format("raised with {}", value));
    edu.set(kAcknowledge, value);
  }
}

std::uint64_t bus_address(Edu& edu, std::uint64_t iova) {
  const auto [address, bytes] = need(edu.function->bus_address(iova), "bus address");
  expect(bytes >= kDmaBytes, "contiguous", fmt::format("{} bytes at {:#x}", bytes, address));
  return address;
}

void dma(Edu& edu, HugeMemory& memory, std::uint64_t iova) {
  for (std::size_t i = 0; i < kDmaBytes; ++i) memory.bytes[i] = pattern(i);
  const std::size_t back = kHugePage + 0x3000;  // this offset is in the second huge page
  const int event = need(edu.function->interrupt(0), "interrupt");
  expect(edu.transfer(bus_address(edu, iova), kBuffer, kInterrupt), "DMA to the card", fmt::format("{} bytes", kDmaBytes));
  expect(counted(event) && (edu.get(kInterruptStatus) & kDmaInterrupt) != 0, "interrupt at the end of DMA");
  edu.set(kAcknowledge, kDmaInterrupt);
  expect(edu.transfer(kBuffer, bus_address(edu, iova + back), kToMemory), "DMA from the card",
         fmt::format("{} bytes", kDmaBytes));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kDmaBytes; ++i) wrong += memory.bytes[back + i] != pattern(i);
  for (std::size_t i = kDmaBytes; i < kDmaBytes + 64; ++i) wrong += memory.bytes[back + i] != std::byte{0};
  expect(wrong == 0, "every byte came back", fmt::format("{} wrong", wrong));
}

/// Runs another process of this program; returns its exit status.
int run(std::vector<std::string> arguments, bool as_user, bool kill_when_mapped = false) {
  std::array<int, 2> out{};
  if (::pipe(out.data()) != 0) return -1;
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(out[1], 1);
    ::close(out[0]);
    const gid_t readout = 2000;  // this group is in the guest's /etc/group
    if (as_user && (::setgroups(1, &readout) != 0 || ::setgid(1000) != 0 || ::setuid(1000) != 0)) ::_exit(99);
    std::vector<char*> argv{const_cast<char*>("/bin/pci_probe")};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(98);
  }
  ::close(out[1]);
  std::string said;
  std::array<char, 512> piece{};
  for (ssize_t got; (got = ::read(out[0], piece.data(), piece.size())) > 0;) {
    said.append(piece.data(), static_cast<std::size_t>(got));
    if (kill_when_mapped && said.find("mapped\n") != std::string::npos) ::kill(child, SIGKILL);
  }
  ::close(out[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  for (std::size_t at = 0, end; at < said.size(); at = end + 1) {
    end = std::min(said.find('\n', at), said.size());
    fmt::print("  child: {}\n", said.substr(at, end - at));
  }
  std::fflush(stdout);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

bool bus_mastering(Edu& edu) {
  std::uint16_t command = 0;
  need(edu.function->read(kConfigurationRegion, PCI_COMMAND, std::as_writable_bytes(std::span(&command, 1))),
       "command register");
  return (command & PCI_COMMAND_MASTER) != 0;
}

Result<ByteLock> lock_channel(Edu& edu, const Address& address) {
  return ByteLock::acquire(need(edu.function->lock_node(), "node of the locks"), 0, "DMA channel 0",
                           need(function_lock_file(address), "lock file"));
}

/// The keeper of a running client is killed: registers and DMA still work. The client keeps the card until its end.
void without_keeper(const Address& address, HugeMemory& memory) {
  constexpr std::uint64_t kIova = 0x400000;
  Edu edu = open_edu(false, address);
  need(edu.function->dma_map(memory.bytes, memory.fd, 0, kIova), "map for a keeper that dies");
  need(edu.function->set_bus_master(true), "bus mastering");
  expect(std::system("killall -9 rodeo") == 0, "keeper killed");  // NOLINT(bugprone-command-processor): a guest of our own
  registers(edu);
  dma(edu, memory, kIova);
  HugeMemory more(kHugePage);
  expect_refused(edu.function->dma_map(more.bytes, more.fd, 0, 0x2000000), "card.gone", "map without a keeper");
  expect_refused(open_vfio(address), "card.held", "a new client beside one of the keeper that died");
  edu.function.reset();
  edu = open_edu(false, address);
  registers(edu);
  expect(!bus_mastering(edu), "bus mastering is off in new hands");
}

int all(bool uio, const std::string& name, const Address& address) {
  const std::string kind = uio ? "uio" : "vfio";
  Edu edu = open_edu(uio, address);
  expect(edu.function->translates() != uio, "translates", uio ? "no" : "yes");
  registers(edu);
  regions(edu);
  need(edu.function->set_bus_master(true), "bus mastering");  // message-signalled interrupts are writes, too
  interrupts(edu);

  constexpr std::uint64_t kIova = 0x100000;
  HugeMemory memory(2 * kHugePage);
  expect_refused(edu.function->dma_map(memory.bytes, -1, 0, kIova), "card.dma_memory", "memory without a file");
  expect_refused(edu.function->dma_map(memory.bytes, memory.fd, kHugePage, kIova), "card.dma_memory",
                 "memory beyond the end of its file");
  const int plain = ::memfd_create("plain", MFD_CLOEXEC);
  if (::ftruncate(plain, 1 << 20) != 0) return 1;
  if (uio)
    expect_refused(edu.function->dma_map(memory.bytes.first(1 << 20), plain, 0, kIova), "card.not_contiguous",
                   "memory that is not on huge pages");
  need(edu.function->dma_map(memory.bytes, memory.fd, 0, kIova), "map memory");
  expect_refused(edu.function->dma_map(memory.bytes.first(kHugePage), memory.fd, 0, kIova + kHugePage), "card.refused",
                 "overlapping map");
  dma(edu, memory, kIova);

  std::optional<ByteLock> lock(need(lock_channel(edu, address), "channel locked"));
  expect(run({"registers", kind, name}, false) == 0, "second process beside DMA");
  expect(run({"registers", kind, name, "elsewhere"}, false) == 0, "second process in other namespaces");
  if (!uio) {
    expect(run({"registers", kind, name}, true) == 0, "second process of another user");
    // The address is not mapped: the IOMMU stops the access, the card and this process continue.
    expect(edu.transfer(kBuffer, 0x8000000, kToMemory), "DMA to an address that is not mapped", "survived");
  }
  dma(edu, memory, kIova);

  expect_refused(edu.function->dma_unmap(kIova, kHugePage), "card.dma_memory", "unmapping a part");
  if (!uio) {
    need(edu.function->dma_unmap(kIova, memory.bytes.size()), "unmap");
    std::memset(memory.bytes.data(), 0x5a, kDmaBytes);
    expect(edu.transfer(kBuffer, kIova, kToMemory), "DMA to memory that was unmapped", "survived");
    bool untouched = true;
    for (std::size_t i = 0; i < kDmaBytes; ++i) untouched = untouched && memory.bytes[i] == std::byte{0x5a};
    expect(untouched, "unmapped memory is untouched");
    need(edu.function->dma_map(memory.bytes, memory.fd, 0, kIova), "map again");
  }
  const auto reset = edu.function->reset();
  expect(reset.has_value(), "reset", reset ? "" : reset.error().message());
  need(edu.function->set_bus_master(true), "bus mastering after reset");
  registers(edu);
  dma(edu, memory, kIova);

  lock.reset();
  // The death of one of two owners does not disturb the DMA of the other.
  expect(run({"die", kind, name}, false, true) == 1000 + SIGKILL, "second owner killed");
  std::this_thread::sleep_for(milliseconds{200});
  expect(bus_mastering(edu), "bus mastering stays for the other owner");
  dma(edu, memory, kIova);
  need(edu.function->dma_unmap(kIova, memory.bytes.size()), "unmap");
  // The death of the only owner: the card loses the memory, and bus mastering ends.
  expect(run({"die", kind, name}, false, true) == 1000 + SIGKILL, "only owner killed");
  expect(edu.wait([&] { return !bus_mastering(edu); }), "bus mastering ends with its owner");
  const std::string status = need(keeper_status(), "status");
  expect(
      status.find("\"mapped_bytes\":4194304") == std::string::npos && status.find("\"mapped_bytes\":0") != std::string::npos,
      "nothing is mapped", status);

  if (!uio) need(edu.function->dma_map(memory.bytes, memory.fd, 0, kIova), "map once more");
  if (!uio) expect_refused(stop_keeper(), "card.held", "keeper stopped while memory is mapped");
  need(keep_function(address, true), "keep");
  edu.set(kLiveness, 7);
  edu.function.reset();
  edu = open_edu(uio, address);
  expect(edu.get(kLiveness) == ~7U, "state survives its process");
  edu.function.reset();
  if (!uio) without_keeper(address, memory);
  const auto stopped = stop_keeper();
  expect(stopped && *stopped, "keeper stopped");
  expect(edu.wait([] { return need(keeper_status(), "status").empty(); }), "keeper gone");
  return failures == 0 ? 0 : 1;
}

int main_of(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  const bool whole = first == "vfio" || first == "uio";
  const bool elsewhere = argc == 5 && std::string(argv[4]) == "elsewhere";
  if (argc != (whole ? 3 : elsewhere ? 5 : 4)) return 2;
  // Simulates a container with only the keeper's socket: devices, system files and network are separate.
  if (elsewhere && (::unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC) != 0 ||
                    ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                    ::mount("tmpfs", "/dev", "tmpfs", 0, nullptr) != 0)) {
    fmt::print("FAILED namespaces: {}\n", std::strerror(errno));
    return 1;
  }
  const bool uio = std::string(argv[whole ? 1 : 2]) == "uio";
  const std::string name = argv[whole ? 2 : 3];
  const Address address = need(Address::parse(name), "address");
  if (whole) return all(uio, name, address);
  Edu edu = open_edu(uio, address);
  if (first == "registers") {
    registers(edu);
    expect_refused(lock_channel(edu, address), "card.locked", "channel of another is refused");
    return failures == 0 ? 0 : 1;
  }
  HugeMemory memory(2 * kHugePage);
  need(edu.function->dma_map(memory.bytes, memory.fd, 0, 0x2000000), "map");
  need(edu.function->set_bus_master(true), "bus mastering");
  const ByteLock lock = need(lock_channel(edu, address), "channel locked, which died with its last owner");
  fmt::print("mapped\n");
  std::fflush(stdout);
  ::pause();
  return 1;
}

}  // namespace
}  // namespace rodeo::card::pci

int main(int argc, char** argv) { return rodeo::card::pci::main_of(argc, argv); }
