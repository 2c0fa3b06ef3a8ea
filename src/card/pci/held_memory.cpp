#include "card/pci/held_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "card/pci/keeper_protocol.h"

namespace rodeo::card::pci {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
constexpr std::uint64_t kFrame = (std::uint64_t{1} << 55) - 1;

std::unexpected<Error> refused(std::string code, std::string what, std::string next = {}) {
  return std::unexpected(Error{std::move(code), std::move(what), "", std::move(next)});
}

}  // namespace

Result<HeldMemory> HeldMemory::hold(int fd, std::uint64_t offset, std::uint64_t bytes, bool huge_only) {
  struct stat file{};
  struct statfs system{};
  if (::fstat(fd, &file) != 0 || ::fstatfs(fd, &system) != 0 || !S_ISREG(file.st_mode))
    return refused("card.dma_memory", "the memory for the card is not backed by a file that can be mapped");
  const bool huge = system.f_type == HUGETLBFS_MAGIC;
  if (!huge && huge_only) {
    return refused("card.not_contiguous",
                   "the memory is not on huge pages, and without an IOMMU the card needs memory that is contiguous",
                   "set huge pages aside: echo 256 | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
  }
  // Mapping another kind of file could block the keeper for ever.
  if (!huge && system.f_type != TMPFS_MAGIC)
    return refused("card.dma_memory", "memory for a card must be a memfd or a file on hugetlbfs or tmpfs",
                   "use /dev/shm or memfd_create");
  const auto size = static_cast<std::uint64_t>(file.st_size);
  if (bytes == 0 || offset % kPage != 0 || bytes % kPage != 0 || bytes > size || offset > size - bytes) {
    return refused(
        "card.dma_memory",
        fmt::format("{} bytes at {} of a file of {} bytes cannot be mapped: map whole pages of {} within the file", bytes,
                    offset, size, kPage));
  }
  const std::uint64_t page = huge ? static_cast<std::uint64_t>(system.f_bsize) : kPage;
  const std::uint64_t begin = offset / page * page;
  const std::uint64_t end = (offset + bytes + page - 1) / page * page;
  base::Mapping mapped(
      ::mmap(nullptr, end - begin, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, static_cast<off_t>(begin)),
      end - begin);
  if (!mapped) {
    const int why = errno;
    return refused("card.dma_memory",
                   fmt::format("cannot map {} for the card: {}", base::format_size(bytes), std::strerror(why)),
                   why == EACCES           ? "open the file for reading and writing"
                   : huge && why == ENOMEM ? "set more huge pages aside"
                                           : "");
  }
  return HeldMemory(std::move(mapped), offset - begin, bytes, page);
}

Result<std::vector<PhysicalRun>> HeldMemory::physical(std::uint64_t offset, std::size_t most) const {
  if (offset >= bytes_) return refused("card.dma_memory", "the address is beyond the mapped memory");
  const Descriptor map(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (!map) return refused("card.permission", fmt::format("cannot open /proc/self/pagemap: {}", std::strerror(errno)));
  std::vector<PhysicalRun> runs;
  for (std::uint64_t at = skip_ + offset; at < skip_ + bytes_;) {
    const auto address = reinterpret_cast<std::uintptr_t>(mapped_.data()) + at;
    std::uint64_t entry = 0;
    if (::pread(map.get(), &entry, sizeof entry, static_cast<off_t>(address / kPage * sizeof entry)) != sizeof entry)
      return refused("card.dma_memory", fmt::format("cannot read /proc/self/pagemap: {}", std::strerror(errno)));
    if ((entry & kPresent) == 0)
      return refused("card.not_contiguous", "a part of the memory is missing: the file behind it has shrunk");
    if ((entry & kFrame) == 0)
      return refused("card.permission", "the kernel shows physical addresses to root only",
                     "run the keeper as root: sudo rodeo card keep");
    const std::uint64_t physical = (entry & kFrame) * kPage + address % kPage;
    const std::uint64_t bytes = std::min(page_bytes_ - at % page_bytes_, skip_ + bytes_ - at);
    if (!runs.empty() && runs.back().address + runs.back().bytes == physical) {
      runs.back().bytes += bytes;
    } else {
      if (runs.size() == most) break;
      runs.push_back({physical, bytes});
    }
    at += bytes;
  }
  return runs;
}

}  // namespace rodeo::card::pci
