// Which cards there are, and which of them a user means.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "card/card_id.h"
#include "card/identity.h"

namespace rodeo::card {

/// One function that is, or may be, a readout card.
struct CardEntry {
  unsigned sequence = 0;  // "#N": C-RORCs first, then CRUs, then FELIX, by PCI address; what cannot be identified comes last
  pci::FoundFunction function = {};
  CardType type = CardType::unknown;
  Identity identity = {};
  std::string problem = {};  // why it could not be identified; empty: it could
  std::string note = {};     // what else to know: not all of it can be used
  Error unanswered =
      {};  // with a code: it did not answer in time, or hung up. Opening it would come to the same, after as long a wait
  bool silent = false;  // nothing says which type of card it is: numbers of the list are not those that it has otherwise
};

/// Where functions are looked for and how they are opened; replaced in tests. Emulated functions are opened by several threads at once.
struct CardSource {
  std::function<std::vector<pci::FoundFunction>()> functions = pci::all_functions;
  std::function<Result<std::unique_ptr<Card>>(const pci::FoundFunction&)> open = Card::open;
};

/// All cards. One that does not answer is a row with a problem; the listing never fails. Functions that are certainly no
/// cards are left out. Emulated cards, which may be silent, are asked all at once: the listing waits as long as one of them
/// may take.
std::vector<CardEntry> list_cards(const CardSource& source = {});

/// The card that is meant. A PCI address opens no other card than that one, and may be that of any device
/// (CardType::unknown): its BARs can be read and written. card.not_found lists what there is, and which cards could have had
/// the serial number but do not answer; card.unknown_order if a number of the list is meant while the type of a card is not
/// known, because the numbers follow the types; card.ambiguous if a serial number occurs twice.
Result<CardEntry> find_card(std::string_view text, const CardSource& source = {});
Result<CardEntry> find_card(const CardId& id, const CardSource& source = {});

/// The same for several at once: cards are listed once for all numbers and serial numbers, and emulated ones that are named by
/// their addresses are asked together. As many results as ids, in their order.
std::vector<Result<CardEntry>> find_cards(const std::vector<std::string>& ids, const CardSource& source = {});

/// Calls `work(i)` for 0 to `count`-1: for those that are emulated (`emulated(i)`), which may be silent, on up to 32 threads, for the
/// others on this one in turn. Returns when all are done.
void all_at_once(std::size_t count, const std::function<bool(std::size_t)>& emulated,
                 const std::function<void(std::size_t)>& work);

}  // namespace rodeo::card
