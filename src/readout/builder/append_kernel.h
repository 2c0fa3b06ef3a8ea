// The inner loop of the GBT builder: writes a run of equal chunks of one link to consecutive events.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "readout/builder/event_slot.h"

namespace rodeo::readout {

/// A checked uniform run: chunk i belongs to event first + i, and all these events are in the window.
struct AppendRun {
  const std::byte* data = nullptr;
  std::uint32_t size = 0;    ///< bytes of a chunk
  std::uint32_t stride = 0;  ///< bytes from one chunk to the next
  std::uint32_t count = 0;
  std::uint64_t header = 0;  ///< the ChunkHeader of every chunk, as the 8 bytes in memory
  const std::uint16_t* bcids = nullptr;
  Sequence first = 0;
};

/// Appends header, bytes and padding of each chunk to its event's slice, and counts the link as done there. Stops before the
/// first chunk whose slice has no room (or no buffer yet), and returns the number of chunks appended.
using AppendKernel = std::uint32_t (*)(EventSlot* ring, std::size_t mask, const AppendRun& run);

/// The fastest kernel for chunks of this size at this CPU level.
AppendKernel append_kernel(std::uint32_t size, base::CpuLevel level);

}  // namespace rodeo::readout
