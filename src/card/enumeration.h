// Lists the cards, and finds the card that a user named.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "card/card_id.h"
#include "card/identity.h"

namespace rodeo::card {

/// One function that is, or may be, a readout card.
struct CardEntry {
  unsigned sequence = 0;  // "#N": C-RORCs first, then CRUs, then FELIX, by PCI address; cards of unknown type come last
  pci::FoundFunction function = {};
  CardType type = CardType::unknown;
  Identity identity = {};
  std::string problem = {};  // why the card could not be identified; empty: it was identified
  std::string note = {};     // a limit of its use: an unknown register map
  Error unanswered =
      {};  // with a code: the card did not answer in time, or hung up. Opening it would fail after as long a wait
  bool silent = false;  // the type of the card is unknown: the numbers in the list may be wrong
};

/// Finds and opens functions; tests replace it. Several threads open emulated functions at once.
struct CardSource {
  std::function<std::vector<pci::FoundFunction>()> functions = pci::all_functions;
  std::function<Result<std::unique_ptr<Card>>(const pci::FoundFunction&)> open = Card::open;
};

/// All cards. A card that does not answer is a row with a problem; the listing never fails. Functions that are certainly not
/// cards are left out. Emulated cards may be silent, so all of them are asked at once: the listing takes no longer than the
/// slowest one.
std::vector<CardEntry> list_cards(const CardSource& source = {});

/// Finds the named card. A PCI address opens this card alone. It may be the address of any other device (CardType::unknown),
/// to read and write its BARs. Errors: card.not_found lists all cards, and the silent cards that may have the serial number;
/// card.unknown_order: the name is a number of the list, and the type of a card is unknown (the numbers follow the types);
/// card.ambiguous: a serial number occurs twice.
Result<CardEntry> find_card(std::string_view text, const CardSource& source = {});
Result<CardEntry> find_card(const CardId& id, const CardSource& source = {});

/// Finds several cards at once: lists the cards once for all numbers and serial numbers, and asks emulated cards that are
/// named by address together. Returns one result for each id, in their order.
std::vector<Result<CardEntry>> find_cards(const std::vector<std::string>& ids, const CardSource& source = {});

/// Calls `work(i)` for 0 to `count`-1: for cards that may be silent (`may_be_silent(i)`), on up to 32 threads; for the
/// others on the calling thread, one after the other. Returns when all are done.
void all_at_once(std::size_t count, const std::function<bool(std::size_t)>& may_be_silent,
                 const std::function<void(std::size_t)>& work);

}  // namespace rodeo::card
