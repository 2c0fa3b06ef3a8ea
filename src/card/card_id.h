// The ways in which a user names a card: 3b:00.0, 0000:3b:00.0, #2, 0233 or 0233:1.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "card/pci/function.h"

namespace rodeo::card {

/// "#2": the place in the list of cards.
struct SequenceId {
  unsigned number = 0;
  auto operator<=>(const SequenceId&) const = default;
};

/// "0233:1": three to five decimal digits (fewer would be taken for a place in the list), and the endpoint, 0 if it is left
/// out.
struct SerialId {
  std::uint32_t serial = 0;
  unsigned endpoint = 0;
  auto operator<=>(const SerialId&) const = default;
};

using CardId = std::variant<pci::Address, SequenceId, SerialId>;

/// Blanks around the name are allowed, other text is not. Error card.bad_id says what the nearest of the three forms lacks.
Result<CardId> parse_card_id(std::string_view text);

}  // namespace rodeo::card
