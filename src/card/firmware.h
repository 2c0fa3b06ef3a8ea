// The firmware versions that the driver knows, by the hash that a card reports (readoutcard-paper §IV.C).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "card/card.h"
#include "card/identity.h"

namespace rodeo::card {

/// Hash (hexadecimal without leading zeros) to name. Compatible versions may be used; older versions only have a name.
class FirmwareTable {
 public:
  /// The versions that this driver was written for, and those of the emulated cards.
  static FirmwareTable built_in();

  /// Adds a local version as compatible. Error card.bad_firmware_table if the hash is not one to eight hexadecimal digits.
  /// Leading zeros do not matter.
  Result<void> add(std::string_view hash, std::string name);

  /// The name; "v2.0 (old)" for a version that is not compatible; the hash itself for an unknown version.
  std::string name_of(std::uint32_t hash) const;
  bool compatible(std::uint32_t hash) const { return compatible_.contains(hash); }

 private:
  std::map<std::uint32_t, std::string> compatible_;
  std::map<std::uint32_t, std::string> old_;
};

/// Error card.firmware if the card's firmware is not compatible; names the card, its firmware and the remedy.
Result<void> check_firmware(Card& card, const FirmwareTable& table);

}  // namespace rodeo::card
