// Memory as the card sees it: mapped for DMA while this object lives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "card/dma/memory.h"
#include "card/pci/function.h"

namespace rodeo::card {

/// Move only; unmaps at the end, if that comes in the process that mapped. The function and the memory must outlive it.
class Registration {
 public:
  /// `slot` is where in the I/O address space to try first: channels of one function should ask for different ones.
  static Result<Registration> map(pci::Function& function, const SharedMemory& memory, unsigned slot);

  /// The address that the card must be told for `bytes` bytes from `offset`; nothing if they are not contiguous for it.
  std::optional<std::uint64_t> bus_address(std::uint64_t offset, std::uint64_t bytes) const {
    for (const Segment& segment : segments_) {
      if (offset >= segment.offset && offset - segment.offset < segment.bytes)
        return bytes <= segment.bytes - (offset - segment.offset) ? std::optional(segment.bus + (offset - segment.offset))
                                                                  : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  struct Segment {
    std::uint64_t offset;
    std::uint64_t bytes;
    std::uint64_t bus;
  };
  struct Unmap {
    std::uint64_t iova;
    std::uint64_t bytes;
    void operator()(pci::Function* function) const {
      (void)function->dma_unmap(iova, bytes);  // in a forked child the function refuses
    }
  };
  std::unique_ptr<pci::Function, Unmap> mapped_;
  std::vector<Segment> segments_;  // neighbours that are contiguous are one
};

}  // namespace rodeo::card
