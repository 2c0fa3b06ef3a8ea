// FELIX identifiers as text, and as a card's 11-bit E-link numbers (docs/reference/formats/identifiers.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rodeo/ids.h"

namespace rodeo::formats {

/// The text of a link for people and programs: "0x1000000000540000", always 16 digits.
std::string to_text(Fid fid);
/// The text of a ROB: "0x00610001".
std::string to_text(SourceId id);

/// Number of an E-link on its card, as in block headers: link << 6 | e-link.
inline constexpr std::uint32_t kCardElinkBits = 11;
inline constexpr std::uint32_t kCardElinks = 1U << kCardElinkBits;

constexpr std::uint16_t card_elink(std::uint32_t link, std::uint32_t egroup, std::uint32_t epath) {
  return static_cast<std::uint16_t>((link & 0x1fU) << 6 | (egroup & 7U) << 3 | (epath & 7U));
}

/// card_elink() for lpGBT firmware, where an e-group has four e-paths.
constexpr std::uint16_t card_elink_lpgbt(std::uint32_t link, std::uint32_t egroup, std::uint32_t epath) {
  return static_cast<std::uint16_t>((link & 0x1fU) << 6 | (egroup & 7U) << 2 | (epath & 3U));
}

/// The 11-bit number of a FID, if a card can have this link (below 32) and a fibre leads to it.
std::optional<std::uint16_t> card_elink_of(Fid fid);

/// The to-host FID of an E-link, on the card with this `detector` and `connector`.
constexpr Fid fid_of_card_elink(std::uint32_t detector, std::uint32_t connector, std::uint16_t elink) {
  return Fid::of(detector, connector, elink >> 6 & 0x1fU, elink & 0x3fU);
}

}  // namespace rodeo::formats
