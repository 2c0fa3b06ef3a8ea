// Walks one event from its header to its last chunk and checks it; shared by readers of columns and of single events.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "formats/checksum.h"
#include "formats/full_event.h"
#include "formats/rob.h"
#include "formats/rod_data.h"

namespace rodeo::formats {

/// The checks in addition to those of the structure.
struct EventChecks {
  bool chunk_records =
      true;  ///< the ROD data are Rodeo's (docs/reference/formats/rod-data.md); in events of other writers only fragments are visited
  bool checksums = true;  ///< Adler-32 of event and ROBs, if present
};

/// Bit of a ROB's first status word: its source sent a truncated ROD.
inline constexpr std::uint32_t kRobTruncated = 0x08000000;

/// Calls visitor.chunk(const ChunkRecord&) for each record; returns the error of the first that does not decode. Like
/// for_each_chunk_record(), but inlined into the visitor's loop.
template <typename Visitor>
std::optional<DecodeError> visit_chunks(std::span<const std::byte> rod_data, Visitor&& visitor) {
  for (std::size_t at = 0; at < rod_data.size();) {
    const std::span<const std::byte> rest = rod_data.subspan(at);
    const ChunkExtent chunk = load_chunk_header(rest);
    const std::size_t padding = chunk_padding_bytes(chunk.bytes);
    const std::size_t end = chunk.header_bytes + chunk.bytes;
    bool sound = chunk.header_bytes != 0 && end + padding <= rest.size();
    for (std::size_t i = 0; sound && i < padding; ++i) sound = rest[end + i] == std::byte{0};
    if (!sound) [[unlikely]]
      return next_chunk(rod_data, at).error();
    visitor.chunk(ChunkRecord{.header = chunk.header, .offset = at, .bytes = rest.subspan(chunk.header_bytes, chunk.bytes)});
    at += end + padding;
  }
  return std::nullopt;
}

/// visit_chunks() for any visitor: one with chunk_records(rod_data) walks the records itself, and ends in visit_chunks().
template <typename Visitor>
std::optional<DecodeError> visit_chunks_of(std::span<const std::byte> rod_data, Visitor&& visitor) {
  if constexpr (requires { visitor.chunk_records(rod_data); }) {
    return visitor.chunk_records(rod_data);
  } else {
    return visit_chunks(rod_data, visitor);
  }
}

/// Calls, for the event that fills `bytes`:
///
///     visitor.event(const FullEventView&)
///     visitor.fragment(const RobView&, const RodView*, const AbsentLinks&)   nullptr: a truncated ROD; the status says so
///     visitor.chunk(const ChunkRecord&)                   of the last fragment; or, if the visitor has it,
///     visitor.chunk_records(std::span<const std::byte>)   for all of its records: see visit_chunks_of()
///
/// All arguments refer to `bytes`, or to `buffer` if the payload is compressed. Ends at the first fault, with its offset
/// in the event (in the uncompressed payload if it is compressed): the parts visited before are then not a whole event.
/// Accepts any bytes.
template <typename Visitor>
Decoded<void> walk_event(std::span<const std::byte> bytes, const EventChecks& checks, std::vector<std::byte>& buffer,
                         Visitor&& visitor) {
  const FullEventView event = RODEO_TRY(decode_full_event(bytes));
  if (event.words.size() * kWordBytes != bytes.size()) {
    return word_error(DecodeFault::wrong_value, 1, "event size in words", event.words.size(), bytes.size() / kWordBytes);
  }
  if (checks.checksums && !event.checksum_holds()) {
    return decode_error(DecodeFault::checksum, bytes.size() - kWordBytes, "event checksum", adler32(event.payload.bytes()),
                        event.checksum);
  }
  const WordView robs = RODEO_TRY(event.robs(buffer));
  visitor.event(event);

  const std::size_t payload_at = event.header_words * kWordBytes;
  std::optional<DecodeError> inside;  // the first fault in a ROB
  const Decoded<void> all = for_each_rob(robs, [&](const RobView& rob, std::size_t at) {
    if (inside) return;
    const std::size_t rob_at = payload_at + at;
    const auto found = [&](const DecodeError& error, std::size_t base) { inside = error.from(base); };
    if (checks.checksums && !rob.checksum_holds()) {
      return found({DecodeFault::checksum, (rob.words.size() - 1) * kWordBytes, "ROB checksum", adler32(rob.payload.bytes()),
                    rob.checksum},
                   rob_at);
    }
    const Decoded<RodView> rod = rob.rod();
    if (!rod) {
      const bool says_so = !checks.chunk_records && !rob.status.empty() && (rob.status[0] & kRobTruncated) != 0;
      if (!says_so) return found(rod.error(), rob_at);
      return visitor.fragment(rob, static_cast<const RodView*>(nullptr), AbsentLinks{});
    }
    std::optional<AbsentLinks> absent = AbsentLinks{};
    if (checks.chunk_records) absent = absent_links(rod->status);
    if (!absent) {
      return found({DecodeFault::wrong_value, 0, "number of ROD status words", rod->status.size(), 2},
                   rob_at + rob.payload_offset_bytes());
    }
    visitor.fragment(rob, &*rod, *absent);
    if (!checks.chunk_records) return;
    const std::span<const std::byte> data = rod->data.bytes();
    if (const auto wrong = visit_chunks_of(data, visitor)) {
      found(*wrong, rob_at + static_cast<std::size_t>(data.data() - rob.words.bytes().data()));
    }
  });
  if (inside) return std::unexpected(*inside);
  if (!all) return std::unexpected(all.error().from(payload_at));
  return {};
}

}  // namespace rodeo::formats
