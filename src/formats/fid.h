// FELIX identifiers as text and as a card's 11-bit E-link numbers (docs/formats/identifiers.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rodeo/ids.h"

namespace rodeo::formats {

/// How a link is written wherever people or programs read it: "0x1000000000540000", always 16 digits.
std::string to_text(Fid fid);
/// And a ROB: "0x00610001".
std::string to_text(SourceId id);

/// Number of an E-link on its card, as it stands in block headers: link << 6 | e-link.
inline constexpr std::uint32_t kCardElinkBits = 11;
inline constexpr std::uint32_t kCardElinks = 1U << kCardElinkBits;

constexpr std::uint16_t card_elink(std::uint32_t link, std::uint32_t egroup, std::uint32_t epath) {
  return static_cast<std::uint16_t>((link & 0x1fU) << 6 | (egroup & 7U) << 3 | (epath & 7U));
}

/// The same for lpGBT firmware, whose e-groups have four e-paths.
constexpr std::uint16_t card_elink_lpgbt(std::uint32_t link, std::uint32_t egroup, std::uint32_t epath) {
  return static_cast<std::uint16_t>((link & 0x1fU) << 6 | (egroup & 7U) << 2 | (epath & 3U));
}

/// The 11-bit number of a FID, if its link is one that a card can have (below 32) and it has a fibre behind it.
std::optional<std::uint16_t> card_elink_of(Fid fid);

/// The to-host FID of an E-link of the card that `detector` and `connector` name.
constexpr Fid fid_of_card_elink(std::uint32_t detector, std::uint32_t connector, std::uint16_t elink) {
  return Fid::of(detector, connector, elink >> 6 & 0x1fU, elink & 0x3fU);
}

}  // namespace rodeo::formats
