// Huge pages of this host by NUMA node and size: lists them and sets them aside.
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

/// Sorted by node and size; empty if the kernel offers none. `root` contains sys; tests pass a tree of their own.
std::vector<HugePagePool> huge_page_pools(const std::filesystem::path& root = "/");

/// A mount of hugetlbfs in /proc/mounts: files in the directory use huge pages of one size.
struct HugePageMount {
  std::filesystem::path directory;
  std::uint64_t page_bytes = 0;  ///< 0: the default size of the kernel
};
std::vector<HugePageMount> huge_page_mounts(const std::filesystem::path& root = "/");

/// The host that set_huge_pages() changes; tests replace its tree and its write function.
struct HugePageHost {
  std::filesystem::path root = "/";
  /// Writes a number into a file of sysfs; an error has the system's reason.
  std::function<Result<void>(const std::filesystem::path& file, std::uint64_t pages)> write = write_huge_pages;

  static Result<void> write_huge_pages(const std::filesystem::path& file, std::uint64_t pages);
};

/// Bytes that could become huge pages of a NUMA node: its free memory and its reclaimable caches, at most the available
/// memory of the whole host, minus a reserve for other programs (an eighth of the node's memory, 512 MiB at least). 0 if the
/// kernel does not report these numbers.
std::uint64_t bytes_for_huge_pages(unsigned node, const std::filesystem::path& root = "/");

/// Sets the number of pages of a pool until the next boot. Changes nothing if the memory is too small for them
/// (card.huge_pages_memory). Puts the old number back if the kernel's memory is too fragmented. Needs root.
/// Other errors: card.huge_pages (no such pool, no permission, too few pages found).
Result<HugePagePool> set_huge_pages(unsigned node, std::uint64_t page_bytes, std::uint64_t pages,
                                    const HugePageHost& host = {});

}  // namespace rodeo::card
