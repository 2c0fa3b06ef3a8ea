// Huge pages of this host by NUMA node and size: how many there are, and setting them aside.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"

namespace rodeo::control {

/// One size of page on one NUMA node.
struct HugePagePool {
  unsigned node = 0;
  std::uint64_t page_bytes = 0;
  std::uint64_t pages = 0;
  std::uint64_t free = 0;
};

/// Sorted by node and size; empty if the kernel offers none. `root`: where sys is; tests give a tree of their own.
std::vector<HugePagePool> huge_page_pools(const std::filesystem::path& root = "/");

/// Directories where files on huge pages of a size can be made (hugetlbfs), as /proc/mounts says.
struct HugePageMount {
  std::filesystem::path directory;
  std::uint64_t page_bytes = 0;  ///< 0: the default size of the kernel
};
std::vector<HugePageMount> huge_page_mounts(const std::filesystem::path& root = "/");

/// Sets the number of pages of a pool until the next boot and returns what the kernel then has: fewer if its memory is too fragmented. Needs root.
/// Errors: card.huge_pages (no such pool, no permission).
Result<HugePagePool> set_huge_pages(unsigned node, std::uint64_t page_bytes, std::uint64_t pages,
                                    const std::filesystem::path& root = "/");

}  // namespace rodeo::control
