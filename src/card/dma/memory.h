// Memory that a card may write to: shared, with a file behind it, on the largest pages there are.
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

/// Any shared memory: DmaMemory, or a mapping of the user's. It must outlive the channel that it is given to.
struct SharedMemory {
  std::span<std::byte> bytes;
  int fd = -1;                  // the file behind it; -1: none (only some back ends can take such memory)
  std::uint64_t fd_offset = 0;  // of bytes[0] in the file
};

/// Owns such memory. All of it is touched at creation, so nothing faults in while data arrive.
class DmaMemory {
 public:
  /// Anonymous: 1 GiB huge pages if the size is a multiple of 1 GiB, then 2 MiB ones, then plain pages. base.memory if there is not enough. `node`: the
  /// NUMA node that it is bound to; where that is refused or has too few pages it is preferred, and description() says where they lie. -1: any.
  static Result<DmaMemory> create(std::size_t bytes, int node = -1);
  /// A file in hugetlbfs or /dev/shm, made if it is not there, mode 0600; others can map it too. It stays when the object goes.
  static Result<DmaMemory> open(const std::filesystem::path& file, std::size_t bytes);

  SharedMemory shared() const { return {mapping_.bytes(), fd_.get(), 0}; }
  std::span<std::byte> bytes() const { return mapping_.bytes(); }
  base::PageKind kind() const { return kind_; }
  /// The NUMA nodes that pages lie on, of at most 64 that are asked; empty: the kernel does not say.
  std::vector<int> nodes() const;
  /// For logs: "512 MiB on 2 MiB huge pages of NUMA node 1".
  std::string description() const;

 private:
  base::Mapping mapping_;
  base::UniqueFd fd_;
  base::PageKind kind_ = base::PageKind::transparent;
};

}  // namespace rodeo::card
