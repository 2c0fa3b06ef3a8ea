#include "card/identity.h"

#include <chrono>
#include <thread>

#include <fmt/core.h>

#include "card/card_wait.h"
#include "card/operations/flash.h"
#include "card/operations/i2c.h"
#include "card_registers/crorc.h"
#include "card_registers/cru.h"
#include "card_registers/felix.h"

namespace rodeo::card {
namespace {

namespace cru = card_registers::cru;
namespace crorc = card_registers::crorc;
namespace felix = card_registers::felix;

// The register has the number if any program has asked for it since power-on; else the card fetches it from an EEPROM or the
// flash.
Result<std::optional<std::uint32_t>> fetch_serial(Card& card, const card_registers::Register& command, std::uint32_t value,
                                                  const card_registers::Register& serial,
                                                  std::chrono::milliseconds patience) {
  CardWait wait(patience);
  for (bool asked = false;;) {
    const auto word = RODEO_TRY(card.read(serial));
    if (const auto number = serial_from_ascii(word)) return number;
    if (!asked) {
      RODEO_TRY(card.write(command, value));
      asked = true;
    }
    if (wait.over()) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Result<std::uint64_t> read_firmware_word(Card& card) {
  switch (card.type()) {
    case CardType::cru: return card.read64(cru::reg("firmware_hash"));
    case CardType::crorc: return card.read64(crorc::reg("firmware_hash"));
    case CardType::felix: return card.read64(felix::reg("git_hash"));
    case CardType::unknown: break;
  }
  return 0;
}

std::optional<std::uint32_t> hash_or_nothing(std::uint64_t word) {
  const auto hash = static_cast<std::uint32_t>(word);
  return hash == 0 || hash == 0xffffffff ? std::nullopt : std::optional(hash);
}

}  // namespace

std::optional<std::uint32_t> serial_from_ascii(std::uint32_t word) {
  std::uint32_t serial = 0;
  for (int i = 0; i < 4; ++i, word >>= 8) {
    const std::uint32_t digit = (word & 0xff) - '0';
    if (digit > 9) return std::nullopt;
    serial = serial * 10 + digit;
  }
  return serial == 0 ? std::nullopt : std::optional(serial);
}

std::string hash_text(std::uint32_t hash) { return fmt::format("{:x}", hash); }

Result<std::optional<std::uint32_t>> read_firmware_hash(Card& card) {
  const auto word = RODEO_TRY(read_firmware_word(card));
  return hash_or_nothing(word);
}

Result<Identity> identify(Card& card) {
  Identity identity;
  identity.endpoint = card.endpoint();
  Result<std::optional<std::uint32_t>> serial;
  RODEO_TRY(card.check_answers());
  if (!card.check_map()) return identity;  // only the PCI id of the card is known
  const auto firmware = RODEO_TRY(read_firmware_word(card));
  // Firmware without this register reads 0: read the number from the chip that stores it.
  const auto fetch_or = [&](Result<std::optional<std::uint32_t>> fetched, const card_registers::Register& reg,
                            auto from) -> Result<std::optional<std::uint32_t>> {
    if (!fetched || *fetched) return fetched;
    const auto word = RODEO_TRY(card.read(reg));
    // A card without this chip, or with a bus that hangs, has no known number.
    return word == 0 ? from(card).value_or(std::nullopt) : std::nullopt;
  };
  switch (card.type()) {
    case CardType::cru: {
      serial =
          fetch_or(fetch_serial(card, cru::reg("i2c_eeprom_command"), 2, cru::reg("serial"), std::chrono::milliseconds(100)),
                   cru::reg("serial"), serial_of_eeprom);
      const auto user_logic = RODEO_TRY(card.read(cru::reg("user_logic_hash")));
      identity.user_logic_hash = hash_or_nothing(user_logic);
      const auto dirty = RODEO_TRY(card.read(cru::reg("firmware_dirty")));
      identity.firmware_dirty = dirty != 0;
      break;
    }
    case CardType::crorc:
      serial = fetch_or(fetch_serial(card, crorc::reg("flash_command"), crorc::kReadSerial, crorc::reg("serial"),
                                     std::chrono::milliseconds(600)),
                        crorc::reg("serial"), serial_of_flash);
      break;
    case CardType::felix: {
      const auto number = RODEO_TRY(card.read64(felix::reg("serial")));
      if (number != 0 && number <= 99999) serial = static_cast<std::uint32_t>(number);
      break;
    }
    case CardType::unknown: break;
  }
  identity.serial = RODEO_TRY(serial);
  identity.firmware_hash = hash_or_nothing(firmware);
  return identity;
}

}  // namespace rodeo::card
