#include "card/dma/memory.h"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/ranges.h>

namespace rodeo::card {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kGiB = std::size_t{1} << 30;
constexpr unsigned kHuge2m = 21U << 26;  // MFD_HUGE_2MB: log2 of the page size in bits 26 and up
constexpr unsigned kHuge1g = 30U << 26;
constexpr long kHugetlbfsMagic = 0x958458f6;

constexpr std::size_t kMostNodes = 1024;  // the kernel's limit

/// Sets the policy for pages that are not allocated yet. False: the kernel refuses it (a sandbox may), or the node does not
/// exist.
bool set_policy(std::span<std::byte> memory, int policy, int node) {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  std::array<unsigned long, kMostNodes / kBits> mask{};
  if (node < 0 || static_cast<std::size_t>(node) >= kMostNodes) return false;
  mask[static_cast<std::size_t>(node) / kBits] = 1UL << static_cast<std::size_t>(node) % kBits;
  return ::syscall(SYS_mbind, memory.data(), memory.size(), policy, mask.data(), kMostNodes, 0) == 0;
}

bool bring_in(std::span<std::byte> memory) { return ::madvise(memory.data(), memory.size(), MADV_POPULATE_WRITE) == 0; }

// Maps and allocates all pages, or fails: mmap checks the reservation of huge pages, and populating allocates them.
// `policy`: MPOL_BIND for huge pages, where a full node gives an error. For plain pages the kernel would kill the process.
base::Mapping map_shared(int fd, std::size_t bytes, int node, int policy) {
  const auto map = [&](int populate) {
    return base::Mapping(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | populate, fd, 0), bytes);
  };
  if (node < 0) return map(MAP_POPULATE);
  base::Mapping mapping = map(0);
  if (!mapping) return mapping;
  if (policy == MPOL_BIND && set_policy(mapping.bytes(), MPOL_BIND, node) && bring_in(mapping.bytes())) return mapping;
  (void)set_policy(mapping.bytes(), MPOL_PREFERRED, node);
  if (!bring_in(mapping.bytes())) return {};
  return mapping;
}

}  // namespace

Result<DmaMemory> DmaMemory::create(std::size_t bytes, int node) {
  DmaMemory memory;
  if (bytes == 0 || bytes % 4096 != 0)
    return std::unexpected(
        Error{"card.dma_memory", fmt::format("{} bytes are not whole 4 KiB pages", bytes), {}, "round it up"});
  const auto attempt = [&](std::size_t page, unsigned flags, base::PageKind kind) {
    if (bytes % page != 0) return false;
    base::UniqueFd fd(::memfd_create("rodeo-dma", MFD_CLOEXEC | flags));
    if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return false;
    memory.mapping_ = map_shared(fd.get(), bytes, node, kind == base::PageKind::transparent ? MPOL_PREFERRED : MPOL_BIND);
    if (!memory.mapping_) return false;
    memory.fd_ = std::move(fd);
    memory.kind_ = kind;
    return true;
  };
  if (attempt(kGiB, MFD_HUGETLB | kHuge1g, base::PageKind::huge_1g)) return memory;
  if (attempt(2 * kMiB, MFD_HUGETLB | kHuge2m, base::PageKind::huge_2m)) return memory;
  if (const std::size_t available = base::available_memory_bytes(); bytes > available)
    return std::unexpected(Error{
        "base.memory", fmt::format("cannot reserve {} MiB for DMA: {} MiB are available", bytes / kMiB, available / kMiB),
        "", "make the DMA buffer smaller, or end other programs"});
  if (attempt(4096, 0, base::PageKind::transparent)) return memory;
  return std::unexpected(
      Error{"base.memory", fmt::format("cannot map {} MiB for DMA: {}", bytes / kMiB, std::strerror(errno))});
}

Result<DmaMemory> DmaMemory::open(const std::filesystem::path& file, std::size_t bytes) {
  DmaMemory memory;
  const auto failed = [&](const char* what) {
    return std::unexpected(Error{"card.dma_memory", fmt::format("{}: {}", what, std::strerror(errno)), file.native()});
  };
  memory.fd_.reset(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!memory.fd_) return failed("cannot open the file of the DMA buffer");
  struct statfs system{};
  std::size_t page = 4096;
  if (::fstatfs(memory.fd_.get(), &system) == 0 && system.f_type == kHugetlbfsMagic)
    page = static_cast<std::size_t>(system.f_bsize);
  if (bytes == 0 || bytes % page != 0)
    return std::unexpected(Error{"card.dma_memory", fmt::format("{} bytes are not whole pages of {} bytes", bytes, page),
                                 file.native(), "round it up to whole huge pages"});
  if (::ftruncate(memory.fd_.get(), static_cast<off_t>(bytes)) != 0) return failed("cannot give the DMA buffer its size");
  memory.mapping_ = map_shared(memory.fd_.get(), bytes, -1, MPOL_PREFERRED);
  if (!memory.mapping_) return failed("cannot map the DMA buffer");
  memory.kind_ = page >= kGiB       ? base::PageKind::huge_1g
                 : page >= 2 * kMiB ? base::PageKind::huge_2m
                                    : base::PageKind::transparent;
  return memory;
}

std::vector<int> DmaMemory::nodes() const {
  constexpr std::size_t kMostAsked = 64;
  const std::size_t page = kind_ == base::PageKind::huge_1g ? kGiB : kind_ == base::PageKind::huge_2m ? 2 * kMiB : 4096;
  const std::size_t pages = std::max<std::size_t>(1, mapping_.size() / page);
  const std::size_t step = std::max<std::size_t>(1, pages / kMostAsked);
  std::vector<int> found;
  for (std::size_t i = 0; i < pages; i += step) {
    int node = -1;
    if (::syscall(SYS_get_mempolicy, &node, nullptr, 0, mapping_.bytes().data() + i * page, MPOL_F_NODE | MPOL_F_ADDR) != 0)
      return {};
    found.push_back(node);
  }
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

std::string DmaMemory::description() const {
  const char* pages = kind_ == base::PageKind::huge_1g   ? "1 GiB huge pages"
                      : kind_ == base::PageKind::huge_2m ? "2 MiB huge pages"
                                                         : "plain pages";
  const std::vector<int> nodes = this->nodes();
  const std::string where =
      nodes.empty() ? "" : fmt::format(" of NUMA node{} {}", nodes.size() == 1 ? "" : "s", fmt::join(nodes, ", "));
  return fmt::format("{} MiB on {}{}", std::max<std::size_t>(1, mapping_.size() / kMiB), pages, where);
}

}  // namespace rodeo::card
