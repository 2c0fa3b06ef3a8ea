#include "card/dma/registration.h"

#include <utility>

#include <fmt/core.h>

namespace rodeo::card {
namespace {

// I/O addresses of at most 39 bits, which every IOMMU supports, in slots of 32 GiB; the first slot stays free (32-bit
// addresses, MSI window).
constexpr std::uint64_t kSlotBytes = std::uint64_t{32} << 30;
constexpr unsigned kSlots = 15;

}  // namespace

Result<Registration> Registration::map(pci::Function& function, const SharedMemory& memory, unsigned slot) {
  if (memory.bytes.empty() || memory.bytes.size() % 4096 != 0 ||
      reinterpret_cast<std::uintptr_t>(memory.bytes.data()) % 4096 != 0)
    return std::unexpected(Error{"card.dma_memory", "a DMA buffer has whole 4 KiB pages", function.address().text()});
  if (memory.bytes.size() > kSlotBytes)
    return std::unexpected(Error{"card.dma_memory", fmt::format("a DMA buffer has at most {} GiB", kSlotBytes >> 30),
                                 function.address().text()});
  Error last;
  for (unsigned attempt = 0; attempt < kSlots; ++attempt) {
    const std::uint64_t iova = kSlotBytes * (1 + (slot + attempt) % kSlots);
    auto mapped = function.dma_map(memory.bytes, memory.fd, memory.fd_offset, iova);
    if (!mapped) {
      last = mapped.error();
      // Another owner in the same IOMMU group may use this slot: try the next. Any other error is final.
      if (last.code == "card.refused") continue;
      return std::unexpected(last.within("cannot register the DMA buffer"));
    }
    Registration registration;
    registration.mapped_ = {&function, {.iova = iova, .bytes = memory.bytes.size()}};
    for (std::uint64_t offset = 0; offset < memory.bytes.size();) {
      const auto [bus, contiguous] = RODEO_TRY_WITHIN(function.bus_address(iova + offset), "cannot register the DMA buffer");
      const std::uint64_t bytes = std::min<std::uint64_t>(contiguous, memory.bytes.size() - offset);
      if (bytes == 0)
        return std::unexpected(
            Error{"card.dma_memory", "a part of the DMA buffer has no address for the card", function.address().text()});
      auto& segments = registration.segments_;
      if (!segments.empty() && segments.back().bus + segments.back().bytes == bus) {
        segments.back().bytes += bytes;
      } else {
        segments.push_back({offset, bytes, bus});
      }
      offset += bytes;
    }
    return registration;
  }
  return std::unexpected(last.within("cannot register the DMA buffer"));
}

}  // namespace rodeo::card
