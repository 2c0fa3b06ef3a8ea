// Memory of a client. The keeper holds it through the file behind it, until no card can write to it.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/mapping.h"
#include "card/pci/function.h"

namespace rodeo::card::pci {

/// Physically contiguous memory.
struct PhysicalRun {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

/// One thread at a time.
class HeldMemory {
 public:
  /// Maps a part of a file on tmpfs or hugetlbfs (`huge_only`: hugetlbfs) and touches all of it. Pages that the
  /// IOMMU has pinned stay even if the file shrinks later; without an IOMMU the client must not change the file's size.
  /// Errors: card.dma_memory (cannot be mapped), card.not_contiguous (not on huge pages, which are needed).
  static Result<HeldMemory> hold(int fd, std::uint64_t offset, std::uint64_t bytes, bool huge_only);

  std::span<std::byte> memory() const { return mapped_.bytes().subspan(skip_, bytes_); }
  /// The physical runs of the bytes from `offset`, neighbours merged, at most `most` runs. Errors: card.not_contiguous,
  /// card.permission.
  Result<std::vector<PhysicalRun>> physical(std::uint64_t offset, std::size_t most) const;

 private:
  HeldMemory(base::Mapping mapped, std::size_t skip, std::size_t bytes, std::size_t page)
      : mapped_(std::move(mapped)), skip_(skip), bytes_(bytes), page_bytes_(page) {}

  base::Mapping mapped_;
  std::size_t skip_ = 0;  // huge pages are mapped whole
  std::size_t bytes_ = 0;
  std::size_t page_bytes_ = 4096;
};

}  // namespace rodeo::card::pci
