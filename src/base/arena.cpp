#include "base/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/core.h>

namespace rodeo::base {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kTwoMiB = 2 * kMiB;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kSmall = kMiB / 4;  // memory of at most this size gets pages of 4 KiB
constexpr std::size_t kGiB = std::size_t{1} << 30;

std::size_t round_up(std::size_t bytes, std::size_t page) { return (bytes + page - 1) / page * page; }

std::byte* map(std::size_t bytes, int flags) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

// Anonymous memory that starts on a 2 MiB boundary, so that the kernel can back it with transparent huge pages from the
// first byte.
std::byte* map_transparent(std::size_t bytes) {
  std::byte* memory = map(bytes + kTwoMiB, MAP_NORESERVE);
  if (memory == nullptr) return nullptr;
  const std::size_t skip = (kTwoMiB - reinterpret_cast<std::uintptr_t>(memory) % kTwoMiB) % kTwoMiB;
  if (skip > 0) munmap(memory, skip);
  if (skip < kTwoMiB) munmap(memory + skip + bytes, kTwoMiB - skip);
  madvise(memory + skip, bytes, MADV_HUGEPAGE);
  return memory + skip;
}

}  // namespace

std::size_t available_memory_bytes() {
  std::FILE* file = std::fopen("/proc/meminfo", "re");
  if (file == nullptr) return SIZE_MAX;
  char line[128];
  std::size_t kib = 0;
  bool found = false;
  while (!found && std::fgets(line, sizeof line, file) != nullptr)
    found = std::sscanf(line, "MemAvailable: %zu kB", &kib) == 1;
  std::fclose(file);
  return found ? kib * 1024 : SIZE_MAX;
}

std::size_t free_huge_page_bytes() {
  std::size_t bytes = 0;
  for (const std::size_t page : {kTwoMiB, kGiB}) {
    const std::string name = fmt::format("/sys/kernel/mm/hugepages/hugepages-{}kB/free_hugepages", page / 1024);
    std::FILE* file = std::fopen(name.c_str(), "re");
    if (file == nullptr) continue;
    std::size_t pages = 0;
    if (std::fscanf(file, "%zu", &pages) == 1) bytes += pages * page;
    std::fclose(file);
  }
  return bytes;
}

Result<Arena> Arena::create(std::size_t bytes) {
  Arena arena;
  if (bytes == 0) return arena;
  arena.size_ = bytes;
  // A huge page for each of a thousand connections would be gigabytes, mostly unused.
  if (bytes <= kSmall) {
    arena.mapped_ = round_up(bytes, kPage);
    arena.kind_ = PageKind::transparent;
    arena.data_ = map(arena.mapped_, MAP_POPULATE);
    if (arena.data_ == nullptr)
      return std::unexpected(Error{"base.memory", fmt::format("cannot map {} B: {}", arena.mapped_, std::strerror(errno)),
                                   "", "raise the address space limit (ulimit -v), or end other programs"});
    return arena;
  }
  constexpr int kHuge1g = 30 << 26;  // MAP_HUGE_1GB: log2 of the page size in bits 26 and up
  constexpr int kHuge2m = 21 << 26;
  if (bytes >= kGiB) {
    arena.mapped_ = round_up(bytes, kGiB);
    arena.kind_ = PageKind::huge_1g;
    arena.data_ = map(arena.mapped_, MAP_HUGETLB | MAP_POPULATE | kHuge1g);
  }
  if (arena.data_ == nullptr) {
    arena.mapped_ = round_up(bytes, kTwoMiB);
    arena.kind_ = PageKind::huge_2m;
    arena.data_ = map(arena.mapped_, MAP_HUGETLB | MAP_POPULATE | kHuge2m);
  }
  if (arena.data_ == nullptr) {
    const std::size_t available = available_memory_bytes();
    if (arena.mapped_ > available) {
      return std::unexpected(Error{
          "base.memory", fmt::format("cannot reserve {} MiB: {} MiB are available", arena.mapped_ / kMiB, available / kMiB),
          "", "make the window, the buffers or the input memory smaller, or end other programs"});
    }
    arena.kind_ = PageKind::transparent;
    arena.data_ = map_transparent(arena.mapped_);
    if (arena.data_ == nullptr) {
      return std::unexpected(Error{"base.memory",
                                   fmt::format("cannot map {} MiB: {}", arena.mapped_ / kMiB, std::strerror(errno)), "",
                                   "raise the address space limit (ulimit -v) or make the buffers smaller"});
    }
    for (std::size_t at = 0; at < arena.mapped_; at += 4096) arena.data_[at] = std::byte{0};
  }
  return arena;
}

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, 0)),
      kind_(other.kind_) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  std::swap(kind_, other.kind_);
  return *this;
}

Arena::~Arena() {
  if (data_ != nullptr) munmap(data_, mapped_);
}

std::string Arena::description() const {
  const char* pages = kind_ == PageKind::huge_1g   ? "1 GiB huge pages"
                      : kind_ == PageKind::huge_2m ? "2 MiB huge pages"
                                                   : "transparent huge pages";
  return fmt::format("{} MiB on {}", std::max<std::size_t>(1, size_ / kMiB), pages);
}

}  // namespace rodeo::base
