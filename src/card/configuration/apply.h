// Reads the configuration of a card, compares it, and writes the settings that differ.
#pragma once

#include <string>
#include <vector>

#include "card/card.h"
#include "card/configuration/settings.h"

namespace rodeo::card {

struct Difference {
  std::string name;  // "link 3 fee_id"
  std::string from;  // the card's value
  std::string to;    // the wanted value
  bool operator==(const Difference&) const = default;
};

struct ApplyOptions {
  bool force = false;          // write all settings, also equal ones, with the resets that belong to them
  bool while_running = false;  // apply even if a DMA channel of the card has an owner whose data would change
};

/// The changes that apply() would make; writes nothing. Error card.wrong_type: the settings are for another type of card.
Result<std::vector<Difference>> compare(Card& card, const CardSettings& settings);

/// Checks the settings, writes those that differ, part by part, and reads all of them back. Returns the changes. Holds the
/// card's configuration lock. Data taking is off while links change. Errors: card.locked (a DMA channel is in use),
/// card.not_applied (a field, named, did not take its value).
Result<std::vector<Difference>> apply(Card& card, const CardSettings& settings, const ApplyOptions& options = {});

/// The card's present configuration. Settings that all links share are read from the first enabled link.
Result<CardSettings> read_settings(Card& card);

}  // namespace rodeo::card
