// The fragments of a readout as a link on the network (docs/reference/formats/fragment-stream.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "rodeo/ids.h"
#include "transport/bus.h"

namespace rodeo::readout {

/// The limit of a fragment on the network.
inline constexpr std::size_t kLargestFragment = std::size_t{1} << 30;

/// The FID of a readout's fragments; the argument is the source id of its full events. The link has no fibre, and its stream
/// is 1.
constexpr Fid fragment_stream_fid(SourceId readout) {
  constexpr std::uint64_t kVirtual = std::uint64_t{1} << 35;
  return Fid{Fid::of(readout.subdetector(), readout.module(), 0, 0).value | kVirtual | 1};
}

/// True if this publisher offers a fragment stream and no other link.
inline bool is_fragment_stream(const transport::BusEntry& entry) {
  return !entry.trigger_list && entry.links.size() == 1 && entry.links[0].is_virtual() && entry.links[0].stream() == 1;
}

}  // namespace rodeo::readout
