// Full event: the header of a whole event around its ROBs; writes v5, reads v5 and v4 (docs/reference/formats/event.md,
// "Full event").
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/decode_error.h"
#include "formats/event_format.h"
#include "formats/words.h"
#include "rodeo/ids.h"

namespace rodeo::formats {

/// The fields of a full event that have one value.
struct EventFields {
  SourceId source_id = {};  ///< 0x00 << 16 for a full event
  std::uint32_t bc_time_s = 0;
  std::uint32_t bc_time_ns = 0;
  std::uint64_t global_id = 0;
  std::uint32_t run_type = run_type::kPhysics;
  std::uint32_t run_number = 0;
  std::uint32_t lumi_block = 0;
  L1Id l1id = {};
  std::uint32_t bcid = 0;
  std::uint32_t trigger_type = 0;
  ChecksumType checksum_type = ChecksumType::none;
  Compression compression = Compression::none;

  bool operator==(const EventFields&) const = default;
};

/// A decoded full event; refers to the decoded bytes.
struct FullEventView : EventFields {
  WordView words;             ///< the whole event
  std::uint32_t version = 0;  ///< major << 16 | minor
  std::size_t header_words = 0;
  WordView status;
  WordView l1_info;
  WordView l2_info;
  WordView hlt_info;
  WordView stream_tags;
  std::uint64_t uncompressed_words = 0;  ///< size of the uncompressed payload
  std::uint32_t checksum = 0;            ///< the stored checksum; 0 if there is none
  WordView payload;                      ///< the stored payload: ROBs, or a zlib stream padded to a word

  /// True if there is no checksum, or one that Rodeo cannot compute (CRC16-CCITT).
  bool checksum_holds() const;

  /// True if recovery marked the event (kHeaderNotProven).
  bool header_not_proven() const { return !status.empty() && (status[0] & kHeaderNotProven) != 0; }

  /// The ROBs: the payload itself, or decompressed into `buffer` (which only grows). Offsets count from the start of the
  /// event.
  Decoded<WordView> robs(std::vector<std::byte>& buffer) const;
};

/// Decodes only the header of an event of `whole_bytes`; `front` must contain at least the header. The payload stays empty.
Decoded<FullEventView> decode_event_header(std::span<const std::byte> front, std::size_t whole_bytes);

/// Decodes the event at the start of `bytes`; more may follow it. The payload is not decoded.
Decoded<FullEventView> decode_full_event(std::span<const std::byte> bytes);

}  // namespace rodeo::formats
