// ROD fragment: the data of one event from one readout driver (docs/reference/formats/event.md, "ROD").
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "formats/decode_error.h"
#include "formats/event_format.h"
#include "formats/words.h"
#include "rodeo/ids.h"

namespace rodeo::formats {

/// The fields of a ROD header that vary.
struct RodHeader {
  std::uint16_t minor_version = 0;  ///< version of the detector's format
  SourceId source_id = {};
  std::uint32_t run_number = 0;  ///< 31 bits
  L1Id l1id = {};
  std::uint32_t bcid = 0;
  std::uint32_t trigger_type = 0;
  std::uint32_t detector_event_type = 0;

  bool operator==(const RodHeader&) const = default;
};

/// A decoded ROD; refers to the decoded bytes.
struct RodView {
  WordView words;  ///< the whole fragment
  RodHeader header;
  WordView status;
  WordView data;
  StatusPosition status_position = StatusPosition::before_data;
};

/// The contents of Rodeo's status words on absent links (docs/reference/formats/event.md, "Missing and removed links").
struct AbsentLinks {
  std::uint32_t missing = 0;
  WordView listed;  ///< link ids of the first missing links
  /// Bit i % 32 of word i / 32: the i-th configured link of the ROB; empty if the builder does not list them.
  WordView missing_bits;
  WordView removed_bits;

  std::uint32_t removed() const { return count(removed_bits); }
  static std::uint32_t count(WordView bits);
};
inline constexpr std::size_t kMissingListed = 16;

/// Nothing if the words contradict each other.
std::optional<AbsentLinks> absent_links(WordView status);

/// Decodes a ROD that fills `bytes` exactly, as it does inside a ROB.
Decoded<RodView> decode_rod(std::span<const std::byte> bytes);

/// Writes the 9 header words; for writers that build a fragment in place.
void store_rod_header(std::byte* at, const RodHeader& header);

/// Writes the 3 trailer words.
void store_rod_trailer(std::byte* at, std::size_t status_words, std::size_t data_words, StatusPosition position);

}  // namespace rodeo::formats
