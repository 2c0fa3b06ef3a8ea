// Pieces of data into a client's memory: in place where one map holds them, through a bounce buffer over the border of two.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/dma_maps.h"

namespace rodeo::emulator {

/// For consecutive pieces of one client's memory during one Use: a map is looked up once. The DMA thread's.
class DmaWriter {
 public:
  /// `bounce` has room for the largest piece; `faults` counts pieces that lie where nothing is mapped, as an IOMMU would stop them.
  DmaWriter(DmaMaps::Use& use, ClientId client, std::span<std::byte> bounce, std::atomic<std::uint64_t>& faults)
      : use_(use), client_(client), bounce_(bounce), faults_(faults) {}

  /// Has `make(std::byte*)` write a piece of `bytes` at `address`. Pieces behind it, up to `ahead` bytes in all, may follow. False if (part of) it
  /// lies where nothing is mapped.
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
  std::span<std::byte> memory_;  // of one map, from next_ on
  std::uint64_t next_ = 0;
};

}  // namespace rodeo::emulator
