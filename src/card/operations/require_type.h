// The checks of an operation: the type of the card, the range of a value.
#pragma once

#include <fmt/format.h>

#include "card/card.h"

namespace rodeo::card {

/// Error card.wrong_type unless the card is of this type.
inline Result<void> require_type(const Card& card, CardType wanted, std::string_view operation) {
  if (card.type() == wanted) return {};
  return std::unexpected(Error{
      "card.wrong_type", fmt::format("{} is for {} cards; this is a {}", operation, name_of(wanted), name_of(card.type())),
      card.address().text(), "rodeo card list shows which card is which"});
}

/// Error card.bad_setting unless low <= value <= high.
inline Result<void> require_range(std::string_view name, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
  if (value >= low && value <= high) return {};
  return std::unexpected(Error{"card.bad_setting",
                               fmt::format("{} is {}, but must be {} to {}", name, value, low, high),
                               {},
                               "choose a value in between"});
}

}  // namespace rodeo::card
