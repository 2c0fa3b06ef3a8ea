// `rodeo card`: readout cards, real and emulated.
#include "cli/card.h"

#include "cli/verbs.h"

namespace rodeo::cli {

void add_card(Command& root) {
  Command& card = root.verb("card", "Readout cards, real and emulated");
  add_card_keep(card);
}

}  // namespace rodeo::cli
