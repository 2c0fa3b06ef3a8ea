// The identity that a card reports: serial number, endpoint, firmware.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "card/card.h"

namespace rodeo::card {

struct Identity {
  std::optional<std::uint32_t> serial;  // nothing: no number can be read
  std::optional<unsigned> endpoint;
  std::optional<std::uint32_t> firmware_hash;
  std::optional<std::uint32_t> user_logic_hash;  // CRU only
  bool firmware_dirty = false;                   // CRU only
};

/// Reads the whole identity; waits at most 600 ms while the card fetches its serial number.
Result<Identity> identify(Card& card);

/// The firmware's hash alone: one register.
Result<std::optional<std::uint32_t>> read_firmware_hash(Card& card);

/// Parses four ASCII digits, the first in the lowest byte; nothing for other characters and for 0000.
std::optional<std::uint32_t> serial_from_ascii(std::uint32_t word);

/// A firmware hash as tables of firmware write it: hexadecimal without leading zeros.
std::string hash_text(std::uint32_t hash);

}  // namespace rodeo::card
