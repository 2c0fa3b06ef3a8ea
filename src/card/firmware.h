// Which firmware the driver knows, by the hash that a card reports (readoutcard-paper §IV.C).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "card/card.h"
#include "card/identity.h"

namespace rodeo::card {

/// Hash (hexadecimal without leading zeros) to name. What is compatible may be used; older versions are only given their names.
class FirmwareTable {
 public:
  /// The versions that this driver was written for, and those of the emulated cards.
  static FirmwareTable built_in();

  /// A local addition: compatible from now on. card.bad_firmware_table if the hash is not one to eight hexadecimal digits. Leading zeros do not matter.
  Result<void> add(std::string_view hash, std::string name);

  /// The name, "v2.0 (old)" if it is not compatible; the hash itself if it is not known.
  std::string name_of(std::uint32_t hash) const;
  bool compatible(std::uint32_t hash) const { return compatible_.contains(hash); }

 private:
  std::map<std::uint32_t, std::string> compatible_;
  std::map<std::uint32_t, std::string> old_;
};

/// card.firmware if the card's firmware is not in the table; names the card, its firmware and what would do.
Result<void> check_firmware(Card& card, const FirmwareTable& table);

}  // namespace rodeo::card
