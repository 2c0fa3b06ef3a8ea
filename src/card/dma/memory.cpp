#include "card/dma/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>

namespace rodeo::card {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kGiB = std::size_t{1} << 30;
constexpr unsigned kHuge2m = 21U << 26;  // MFD_HUGE_2MB: log2 of the page size in bits 26 and up
constexpr unsigned kHuge1g = 30U << 26;
constexpr long kHugetlbfsMagic = 0x958458f6;

// Pages are there, or this fails: for huge pages the file system's reservation is checked by mmap, and MAP_POPULATE brings them in.
base::Mapping map_shared(int fd, std::size_t bytes) {
  return {::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0), bytes};
}

}  // namespace

Result<DmaMemory> DmaMemory::create(std::size_t bytes) {
  DmaMemory memory;
  if (bytes == 0 || bytes % 4096 != 0)
    return std::unexpected(
        Error{"card.dma_memory", fmt::format("{} bytes are not whole 4 KiB pages", bytes), {}, "round it up"});
  const auto attempt = [&](std::size_t page, unsigned flags, base::PageKind kind) {
    if (bytes % page != 0) return false;
    base::UniqueFd fd(::memfd_create("rodeo-dma", MFD_CLOEXEC | flags));
    if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return false;
    memory.mapping_ = map_shared(fd.get(), bytes);
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
  memory.mapping_ = map_shared(memory.fd_.get(), bytes);
  if (!memory.mapping_) return failed("cannot map the DMA buffer");
  memory.kind_ = page >= kGiB       ? base::PageKind::huge_1g
                 : page >= 2 * kMiB ? base::PageKind::huge_2m
                                    : base::PageKind::transparent;
  return memory;
}

std::string DmaMemory::description() const {
  const char* pages = kind_ == base::PageKind::huge_1g   ? "1 GiB huge pages"
                      : kind_ == base::PageKind::huge_2m ? "2 MiB huge pages"
                                                         : "plain pages";
  return fmt::format("{} MiB on {}", std::max<std::size_t>(1, mapping_.size() / kMiB), pages);
}

}  // namespace rodeo::card
