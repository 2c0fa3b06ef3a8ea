// Writes pieces of data into a client's memory: in place within one map, through a bounce buffer across two maps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/dma_maps.h"

namespace rodeo::emulator {

/// For consecutive pieces of one client's memory during one Use, so that each map is looked up once. For the DMA thread.
class DmaWriter {
 public:
  /// `bounce` has room for the largest piece. `faults` counts pieces in unmapped memory, which an IOMMU would stop.
  DmaWriter(DmaMaps::Use& use, ClientId client, std::span<std::byte> bounce, std::atomic<std::uint64_t>& faults)
      : use_(use), client_(client), bounce_(bounce), faults_(faults) {}

  /// Lets `make(std::byte*)` write a piece of `bytes` at `address`. More pieces may follow it, up to `ahead` bytes in all.
  /// False if part of the piece is not mapped.
  template <typename Make>
  bool write(std::uint64_t address, std::size_t bytes, std::uint64_t ahead, Make&& make) {
    if (address != next_ || memory_.size() < bytes) memory_ = use_.find(client_, address, ahead);
    next_ = address + bytes;
    if (memory_.size() >= bytes) {
      make(memory_.data());
      memory_ = memory_.subspan(bytes);
      return true;
    }
    memory_ = {};
    make(bounce_.data());
    if (use_.write(client_, address, bounce_.first(bytes))) return true;
    faults_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

 private:
  DmaMaps::Use& use_;
  ClientId client_;
  std::span<std::byte> bounce_;
  std::atomic<std::uint64_t>& faults_;
  std::span<std::byte> memory_;  // rest of one map, from next_ on
  std::uint64_t next_ = 0;
};

}  // namespace rodeo::emulator
