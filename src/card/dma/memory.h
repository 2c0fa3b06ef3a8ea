// Memory for a card to write to: shared, backed by a file, on the largest pages that the host has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "base/fd_socket.h"
#include "base/mapping.h"

namespace rodeo::card {

/// Any shared memory: DmaMemory, or a mapping of the user. It must outlive the channel that uses it.
struct SharedMemory {
  std::span<std::byte> bytes;
  int fd = -1;                  // the file behind the memory; -1: none (not every back end takes such memory)
  std::uint64_t fd_offset = 0;  // offset of bytes[0] in the file
};

/// Owns shared memory. Creation touches all of it, so no page fault happens while data arrive.
class DmaMemory {
 public:
  /// Anonymous memory. Tries 1 GiB huge pages if the size is a multiple of 1 GiB, then 2 MiB pages, then plain pages. Error
  /// base.memory if memory is short. `node`: binds huge pages to this NUMA node, or prefers it if binding fails; plain pages
  /// prefer it. description() says where the pages are. -1: any node.
  static Result<DmaMemory> create(std::size_t bytes, int node = -1);
  /// Maps a file in hugetlbfs or /dev/shm; creates a missing one with mode 0600. Other processes can map it too. The file
  /// outlives the object.
  static Result<DmaMemory> open(const std::filesystem::path& file, std::size_t bytes);

  SharedMemory shared() const { return {mapping_.bytes(), fd_.get(), 0}; }
  std::span<std::byte> bytes() const { return mapping_.bytes(); }
  base::PageKind kind() const { return kind_; }
  /// The NUMA nodes of at most 64 sampled pages; empty: the kernel does not report them.
  std::vector<int> nodes() const;
  /// Text for logs: "512 MiB on 2 MiB huge pages of NUMA node 1".
  std::string description() const;

 private:
  base::Mapping mapping_;
  base::UniqueFd fd_;
  base::PageKind kind_ = base::PageKind::transparent;
};

}  // namespace rodeo::card
