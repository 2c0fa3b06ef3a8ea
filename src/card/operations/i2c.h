// The CRU's I2C buses: EEPROM, clock chips, optics. The registers are stated in public (docs/card-tools.md says what is not).
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "card/card.h"

namespace rodeo::card {

enum class CruBus : unsigned char { sfp, minipods, si5344, si5345_1, si5345_2, eeprom };

/// One byte of a chip. Each takes the card's configuration lock, since a bus has one place for chip, register and answer. Errors: card.wrong_type,
/// card.i2c (nothing is ready within 100 ms), those of lock and card.
Result<std::uint8_t> read_i2c(Card& card, CruBus bus, std::uint8_t chip, std::uint8_t reg);
/// The same of a chip with pages: writes the page register (1) first, under the same lock.
Result<std::uint8_t> read_i2c_page(Card& card, CruBus bus, std::uint8_t chip, std::uint8_t page, std::uint8_t reg);

/// The clock that the jitter cleaner (Si5345 #2) takes: the one in use, whatever the card was told. True: TTC, false: local.
Result<bool> ttc_clock_in_use(Card& card);

/// The serial number in the EEPROM, for firmware that has none in its register: "pn":"p40_fv22b0245" is 245. Nothing if there is none.
Result<std::optional<std::uint32_t>> serial_of_eeprom(Card& card);

}  // namespace rodeo::card
