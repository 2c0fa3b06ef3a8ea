// The index of an event file, stored beside it: the place of each data block, and the L1 id of its event
// (docs/reference/formats/event-index.md).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/decode_error.h"

namespace rodeo::formats {

/// One data block. Memory and index have the same bytes.
struct EventPlace {
  std::uint64_t place =
      0;  ///< offset of the separator in the file; kDamaged is added if the header of the event does not decode
  std::uint32_t bytes = 0;  ///< size of the block
  std::uint32_t l1id = 0;   ///< extended L1 id; 0 if the header does not decode

  static constexpr std::uint64_t kDamaged = std::uint64_t{1} << 63;
  std::uint64_t offset() const { return place & ~kDamaged; }
  bool damaged() const { return (place & kDamaged) != 0; }

  bool operator==(const EventPlace&) const = default;
};
static_assert(sizeof(EventPlace) == 16);

/// Identifies the file of an index. If one of these changes, the index is invalid.
struct IndexedFile {
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;     ///< time of the last change, since 1970
  std::uint32_t records_crc = 0;    ///< CRC-32 of the records before the first separator, with GUID and CRC of the file
  std::uint64_t records_bytes = 0;  ///< size of these records

  bool operator==(const IndexedFile&) const = default;
};

std::vector<std::byte> encode_event_index(const IndexedFile& file, std::span<const EventPlace> places);

/// The places, in file order; each block is inside the file, behind its records. Errors: damage, another version, another
/// file. Accepts any bytes.
Decoded<std::vector<EventPlace>> decode_event_index(std::span<const std::byte> index, const IndexedFile& file);

}  // namespace rodeo::formats
