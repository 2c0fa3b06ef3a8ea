#include "input/card_ids.h"

#include <fmt/format.h>

#include <utility>

#include "card/card_id.h"

namespace rodeo::input {

void refuse_bad_cards(const settings::Table& input, settings::ConfigurationErrors& errors) {
  if (input.type() != "card") return;
  const auto refuse = [&](Error error) {
    error.what = fmt::format("{}.cards: {}", input.path(), error.what);
    error.where = settings::where_of(input, "cards");
    errors.push_back(std::move(error));
  };
  const auto cards = input.parameters().list("cards");
  if (cards.empty()) refuse({"readout.no_cards", "the list is empty", "", "`rodeo card list` shows all cards"});
  for (const std::string& card : cards) {
    if (const auto id = card::parse_card_id(card); !id) refuse(id.error());
  }
}

}  // namespace rodeo::input
