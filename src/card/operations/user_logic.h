// The example user logic that comes with a CRU's firmware: it generates events.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "card/card.h"

namespace rodeo::card {

struct UserLogic {
  std::uint32_t event_words = 100;  ///< GBT words of 128 bits
  bool random_size = false;
  std::uint32_t system_id = 0;  ///< 8 bits
  std::uint32_t link_id = 15;   ///< 8 bits
};

/// The values to change; the others stay as they are in the card.
struct UserLogicChange {
  std::optional<std::uint32_t> event_words = {};  ///< 1 to 65535
  std::optional<bool> random_size = {};
  std::optional<std::uint32_t> system_id = {};  ///< 8 bits
  std::optional<std::uint32_t> link_id = {};    ///< 8 bits
};

/// Error card.no_user_logic if the firmware has none (its hash reads 0).
Result<UserLogic> read_user_logic(Card& card);
/// Resets the user logic and writes all its settings, also those that stay. Errors: card.no_user_logic, card.bad_setting.
Result<void> change_user_logic(Card& card, const UserLogicChange& change);

}  // namespace rodeo::card
