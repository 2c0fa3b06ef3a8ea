// ROB fragment: the wrapping of one ROD in an event (docs/reference/formats/event.md, "ROB").
#pragma once

#include <cstdint>
#include <span>

#include "formats/decode_error.h"
#include "formats/event_format.h"
#include "formats/rod.h"
#include "formats/words.h"
#include "rodeo/ids.h"

namespace rodeo::formats {

/// A decoded ROB; refers to the decoded bytes.
struct RobView {
  WordView words;             ///< the whole fragment
  std::uint32_t version = 0;  ///< major << 16 | minor
  SourceId source_id = {};
  WordView status;
  ChecksumType checksum_type = ChecksumType::none;
  std::uint32_t checksum = 0;  ///< the stored checksum; 0 if there is none
  WordView payload;            ///< the ROD

  /// Offset of the payload in the fragment.
  std::size_t payload_offset_bytes() const {
    return static_cast<std::size_t>(payload.bytes().data() - words.bytes().data());
  }

  /// The ROD inside; offsets of errors count from the start of the ROB.
  Decoded<RodView> rod() const;

  /// True if there is no checksum, or one that Rodeo cannot compute (CRC16-CCITT).
  bool checksum_holds() const;
};

/// Decodes the ROB at the start of `bytes`; more may follow it.
Decoded<RobView> decode_rob(std::span<const std::byte> bytes);

/// Calls visit(const RobView&, offset_bytes) for each ROB of an event's payload; ends at the first one that does not decode.
template <typename Visit>
Decoded<void> for_each_rob(WordView payload, Visit&& visit) {
  for (std::size_t at = 0; at < payload.size();) {
    const Decoded<RobView> rob = decode_rob(payload.sub(at, payload.size() - at).bytes());
    if (!rob) return std::unexpected(rob.error().from(at * kWordBytes));
    visit(*rob, at * kWordBytes);
    at += rob->words.size();
  }
  return {};
}

}  // namespace rodeo::formats
