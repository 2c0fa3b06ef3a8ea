// The index of a recording, which is kept beside it: its chunks as events, and where the pieces of each lie (docs/formats/event-index.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/decode_error.h"

namespace rodeo::formats {

/// A chunk, or one of several pieces of it. The bytes in memory are those in the index.
struct RecordedPiece {
  std::uint64_t place = 0;  ///< offset in the recording
  std::uint32_t bytes = 0;
  std::uint16_t link = 0;   ///< E-link, or link of the pages
  std::uint8_t status = 0;  ///< chunk_status bits of the chunk
  std::uint8_t more = 0;    ///< 1: the next piece is of the same chunk

  bool operator==(const RecordedPiece&) const = default;
};
static_assert(sizeof(RecordedPiece) == 16);

/// Chunks with one L1 id, or heartbeat frames of one orbit; at least one.
struct RecordedEvent {
  std::uint64_t first_piece = 0;  ///< its last one stands before the first of the next event
  std::uint32_t l1id = 0;
  std::uint32_t zero = 0;

  bool operator==(const RecordedEvent&) const = default;
};
static_assert(sizeof(RecordedEvent) == 16);

/// All that is known of a recording once it was read through.
struct RecordingTable {
  std::vector<RecordedEvent> events;  ///< by their L1 ids, going on where the bits wrap
  std::vector<RecordedPiece> pieces;  ///< of the events one after the other, within each by links
  std::string damage = {};            ///< what is wrong with the recording, for people; empty: nothing

  /// Whole chunks; a chunk of several pieces is contiguous in no memory.
  std::span<const RecordedPiece> pieces_of(std::size_t event) const {
    const std::uint64_t end = event + 1 < events.size() ? events[event + 1].first_piece : pieces.size();
    return std::span(pieces).subspan(events[event].first_piece, end - events[event].first_piece);
  }

  bool operator==(const RecordingTable&) const = default;
};

/// What an index belongs to: it is good for no other recording, no longer once one of these has changed, and for no other place of the L1 id.
struct IndexedRecording {
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;  ///< since 1970
  std::uint32_t ends_crc = 0;    ///< ends_crc() of it
  std::uint32_t l1id_offset = 0;
  std::uint32_t l1id_bits = 32;

  bool operator==(const IndexedRecording&) const = default;
};

/// CRC-32 of the first 64 KiB, and then of the last 64 KiB; of a shorter file once of all.
std::uint32_t ends_crc(std::span<const std::byte> file);

std::vector<std::byte> encode_recording_index(const IndexedRecording& file, const RecordingTable& table);

/// Each piece lies in the recording whole, no chunk is longer than 32 bits count, and none goes over the end of its event. Errors: damage, another version,
/// another file. Survives any bytes.
Decoded<RecordingTable> decode_recording_index(std::span<const std::byte> index, const IndexedRecording& file);

}  // namespace rodeo::formats
