#include "card/operations/user_logic.h"

#include "card/operations/require_type.h"
#include "card_registers/cru.h"

namespace rodeo::card {

using card_registers::cru::reg;

namespace {

Result<void> require_user_logic(Card& card) {
  if (auto ok = require_type(card, CardType::cru, "user logic"); !ok) return ok;
  const auto hash = card.read(reg("user_logic_hash"));
  if (!hash) return std::unexpected(hash.error());
  if (*hash != 0) return {};
  return std::unexpected(Error{"card.no_user_logic", "the firmware has no user logic", card.address().text(),
                               "rodeo card list shows its version"});
}

}  // namespace

Result<UserLogic> read_user_logic(Card& card) {
  if (auto ok = require_user_logic(card); !ok) return std::unexpected(ok.error());
  const auto size = card.read(reg("user_logic_event_size"));
  const auto random = card.read(reg("user_logic_random"));
  const auto system_id = card.read(reg("user_logic_system_id"));
  const auto link_id = card.read(reg("user_logic_link_id"));
  for (const auto* one : {&size, &random, &system_id, &link_id}) {
    if (!*one) return std::unexpected(one->error());
  }
  return UserLogic{*size, (*random & 1) != 0, *system_id, *link_id};
}

Result<void> set_user_logic(Card& card, const UserLogic& settings) {
  if (auto ok = require_user_logic(card); !ok) return ok;
  if (auto ok = require_range("the event size in GBT words", settings.event_words, 1, 0xffff); !ok) return ok;
  if (auto ok = require_range("the system id", settings.system_id, 0, 0xff); !ok) return ok;
  if (auto ok = require_range("the link id", settings.link_id, 0, 0xff); !ok) return ok;
  const auto random = card.read(reg("user_logic_random"));
  if (!random) return std::unexpected(random.error());
  if (auto done = card.write(reg("user_logic_reset"), 1); !done) return done;
  if (auto done = card.write(reg("user_logic_event_size"), settings.event_words); !done) return done;
  // Writing 1 turns it over.
  if (((*random & 1) != 0) != settings.random_size) {
    if (auto done = card.write(reg("user_logic_random"), 1); !done) return done;
  }
  if (auto done = card.write(reg("user_logic_system_id"), settings.system_id); !done) return done;
  return card.write(reg("user_logic_link_id"), settings.link_id);
}

}  // namespace rodeo::card
