// Memory that is mapped for DMA while this object lives, with its addresses for the card.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "card/dma/memory.h"
#include "card/pci/function.h"

namespace rodeo::card {

/// Move only. The destructor unmaps, if it runs in the process that mapped. The function and the memory must outlive the
/// object.
class Registration {
 public:
  /// `slot` is the first slot of the I/O address space to try; channels of one function should pass different ones.
  static Result<Registration> map(pci::Function& function, const SharedMemory& memory, unsigned slot);

  bool mapped() const { return mapped_ != nullptr; }
  /// Leaves the memory mapped until the function is closed.
  void leave() { (void)mapped_.release(); }

  /// The card's address for `bytes` bytes from `offset`; nothing if they are not contiguous for the card.
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
      (void)function->dma_unmap(iova, bytes);  // the function refuses this in a forked child
    }
  };
  std::unique_ptr<pci::Function, Unmap> mapped_;
  std::vector<Segment> segments_;  // contiguous neighbours are merged
};

}  // namespace rodeo::card
