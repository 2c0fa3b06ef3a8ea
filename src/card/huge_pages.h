// Huge pages of this host by NUMA node and size: how many there are, and setting them aside.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace rodeo::card {

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

/// Where set_huge_pages() works: tests give a tree and a kernel of their own.
struct HugePageHost {
  std::filesystem::path root = "/";
  /// Writes a number into a file of sysfs; an error has the system's reason.
  std::function<Result<void>(const std::filesystem::path& file, std::uint64_t pages)> write = write_huge_pages;

  static Result<void> write_huge_pages(const std::filesystem::path& file, std::uint64_t pages);
};

/// Bytes that could become huge pages of a NUMA node: what is free there or holds nothing but copies of files, at most what
/// the host as a whole has available, less a reserve for everybody else (an eighth of the node's memory, 512 MiB at least);
/// 0 if the kernel does not say.
std::uint64_t bytes_for_huge_pages(unsigned node, const std::filesystem::path& root = "/");

/// Sets the number of pages of a pool until the next boot. Nothing is changed if more is asked for than there is memory for
/// (card.huge_pages_memory). If the kernel's memory is too fragmented for all of them, the old number is put back. Needs root.
/// Errors besides: card.huge_pages (no such pool, no permission, too few were found).
Result<HugePagePool> set_huge_pages(unsigned node, std::uint64_t page_bytes, std::uint64_t pages,
                                    const HugePageHost& host = {});

}  // namespace rodeo::card
