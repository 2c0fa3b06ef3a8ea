#include "card/operations/user_logic.h"

#include "card/operations/require_type.h"
#include "card_registers/cru.h"

namespace rodeo::card {

using card_registers::cru::reg;

namespace {

Result<void> require_user_logic(Card& card) {
  RODEO_TRY(require_type(card, CardType::cru, "user logic"));
  const auto hash = RODEO_TRY(card.read(reg("user_logic_hash")));
  if (hash != 0) return {};
  return std::unexpected(Error{"card.no_user_logic", "the firmware has no user logic", card.address().text(),
                               "rodeo card list shows its version"});
}

}  // namespace

Result<UserLogic> read_user_logic(Card& card) {
  RODEO_TRY(require_user_logic(card));
  const auto size = RODEO_TRY(card.read(reg("user_logic_event_size")));
  const auto random = RODEO_TRY(card.read(reg("user_logic_random")));
  const auto system_id = RODEO_TRY(card.read(reg("user_logic_system_id")));
  const auto link_id = RODEO_TRY(card.read(reg("user_logic_link_id")));
  return UserLogic{size, (random & 1) != 0, system_id, link_id};
}

Result<void> change_user_logic(Card& card, const UserLogicChange& change) {
  const auto now = RODEO_TRY(read_user_logic(card));
  const std::uint32_t event_words = change.event_words.value_or(now.event_words);
  const std::uint32_t system_id = change.system_id.value_or(now.system_id);
  const std::uint32_t link_id = change.link_id.value_or(now.link_id);
  // Check only changed values: a fresh card has an event size of 0.
  if (change.event_words) RODEO_TRY(require_range("the event size in GBT words", event_words, 1, 0xffff));
  if (change.system_id) RODEO_TRY(require_range("the system id", system_id, 0, 0xff));
  if (change.link_id) RODEO_TRY(require_range("the link id", link_id, 0, 0xff));
  RODEO_TRY(card.write(reg("user_logic_reset"), 1));
  RODEO_TRY(card.write(reg("user_logic_event_size"), event_words));
  // Writing 1 toggles it, and the reset may have switched it off.
  const std::uint32_t random = change.random_size.value_or(now.random_size) ? 1 : 0;
  if ((RODEO_TRY(card.read(reg("user_logic_random"))) & 1) != random) RODEO_TRY(card.write(reg("user_logic_random"), 1));
  if ((RODEO_TRY(card.read(reg("user_logic_random"))) & 1) != random)
    return std::unexpected(Error{"card.misbehaved", "the user logic did not change between fixed and random event sizes",
                                 card.address().text(), "see whether its firmware is the example user logic"});
  RODEO_TRY(card.write(reg("user_logic_system_id"), system_id));
  return card.write(reg("user_logic_link_id"), link_id);
}

}  // namespace rodeo::card
