// The index of a recording, stored beside it: its chunks grouped to events, and the place of each piece
// (docs/reference/formats/event-index.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/decode_error.h"

namespace rodeo::formats {

/// A chunk, or one of several pieces of it. Memory and index have the same bytes.
struct RecordedPiece {
  std::uint64_t place = 0;  ///< offset in the recording
  std::uint32_t bytes = 0;
  std::uint16_t link = 0;   ///< E-link, or link of the pages
  std::uint8_t status = 0;  ///< chunk_status bits of the chunk
  std::uint8_t more = 0;    ///< 1: the next piece belongs to the same chunk

  bool operator==(const RecordedPiece&) const = default;
};
static_assert(sizeof(RecordedPiece) == 16);

/// Chunks with one L1 id, or heartbeat frames of one orbit; at least one.
struct RecordedEvent {
  std::uint64_t first_piece = 0;  ///< its pieces end before the first piece of the next event
  std::uint32_t l1id = 0;
  std::uint32_t zero = 0;

  bool operator==(const RecordedEvent&) const = default;
};
static_assert(sizeof(RecordedEvent) == 16);

/// The result of reading a whole recording.
struct RecordingTable {
  std::vector<RecordedEvent> events;  ///< ordered by L1 id, continued where the bits wrap
  std::vector<RecordedPiece> pieces;  ///< grouped by event, then by link
  std::string damage = {};            ///< faults of the recording, for people; empty: none

  /// Pieces of whole chunks; a chunk in several pieces is not contiguous in memory.
  std::span<const RecordedPiece> pieces_of(std::size_t event) const {
    const std::uint64_t end = event + 1 < events.size() ? events[event + 1].first_piece : pieces.size();
    return std::span(pieces).subspan(events[event].first_piece, end - events[event].first_piece);
  }

  bool operator==(const RecordingTable&) const = default;
};

/// Identifies the recording of an index, and the place of the L1 id. If one of these changes, the index is invalid.
struct IndexedRecording {
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;  ///< time of the last change, since 1970
  std::uint32_t ends_crc = 0;    ///< the result of ends_crc()
  std::uint32_t l1id_offset = 0;
  std::uint32_t l1id_bits = 32;

  bool operator==(const IndexedRecording&) const = default;
};

/// CRC-32 of the first 64 KiB followed by the last 64 KiB. Of a shorter file, all bytes are used once.
std::uint32_t ends_crc(std::span<const std::byte> file);

std::vector<std::byte> encode_recording_index(const IndexedRecording& file, const RecordingTable& table);

/// Decodes an index. In the result each piece is inside the recording, the size of each chunk fits in 32 bits, and no chunk
/// crosses the end of its event. Errors: damage, another version, another file. Accepts any bytes.
Decoded<RecordingTable> decode_recording_index(std::span<const std::byte> index, const IndexedRecording& file);

}  // namespace rodeo::formats
