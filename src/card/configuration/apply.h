// A configuration and a card: read it from the card, compare, change what differs.
#pragma once

#include <string>
#include <vector>

#include "card/card.h"
#include "card/configuration/settings.h"

namespace rodeo::card {

struct Difference {
  std::string name;  // "link 3 fee_id"
  std::string from;  // what the card has
  std::string to;    // what is wanted
  bool operator==(const Difference&) const = default;
};

struct ApplyOptions {
  bool force = false;          // write everything, also what is as it should be, and do the parts' own resets
  bool while_running = false;  // also if somebody owns a DMA channel of the card and would get other data
};

/// What applying would change; nothing is written. card.wrong_type if the settings are of another card.
Result<std::vector<Difference>> compare(Card& card, const CardSettings& settings);

/// Checks the settings, changes what differs, part by part, and reads all of it back. Returns what it changed. Holds the card's configuration lock. Data
/// taking is off while links change. card.locked: a DMA channel is in use; card.not_applied: a field did not take its value (named).
Result<std::vector<Difference>> apply(Card& card, const CardSettings& settings, const ApplyOptions& options = {});

/// The configuration that the card has now. Settings that all links share are those of the first enabled one.
Result<CardSettings> read_settings(Card& card);

}  // namespace rodeo::card
