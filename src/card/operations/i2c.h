// The CRU's I2C buses: EEPROM, clock chips, optics. Their registers are public (docs/reference/card-tools.md lists what is
// not).
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "card/card.h"

namespace rodeo::card {

enum class CruBus : unsigned char { sfp, minipods, si5344, si5345_1, si5345_2, eeprom };

/// Reads one byte of a chip. Takes the card's configuration lock, because all users of a bus share its registers. Errors:
/// card.wrong_type, card.i2c (no answer within 100 ms), and those of the lock and the card.
Result<std::uint8_t> read_i2c(Card& card, CruBus bus, std::uint8_t chip, std::uint8_t reg);
/// Reads one byte of a chip with pages: writes the page register (1) first, under the same lock.
Result<std::uint8_t> read_i2c_page(Card& card, CruBus bus, std::uint8_t chip, std::uint8_t page, std::uint8_t reg);

/// The clock that the jitter cleaner (Si5345 #2) uses; it may differ from the card's setting. True: TTC, false: local.
Result<bool> ttc_clock_in_use(Card& card);

/// The serial number in the EEPROM, for firmware that has none in its register: "pn":"p40_fv22b0245" is 245. Nothing if the
/// EEPROM has none.
Result<std::optional<std::uint32_t>> serial_of_eeprom(Card& card);

}  // namespace rodeo::card
