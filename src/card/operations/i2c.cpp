#include "card/operations/i2c.h"

#include <chrono>
#include <string>
#include <thread>

#include <fmt/core.h>

#include "card/card_wait.h"
#include "card/operations/require_type.h"
#include "card/pci/lock.h"
#include "card_registers/cru.h"

namespace rodeo::card {
namespace {

namespace cru = card_registers::cru;
using card_registers::Register;

constexpr std::uint32_t kReset = 8, kWrite = 1, kRead = 2, kIdle = 0;
constexpr std::uint32_t kReady = 0x80000000U;
constexpr std::chrono::milliseconds kBusPatience{100};
constexpr std::chrono::milliseconds kLockPatience{2000};
constexpr std::uint8_t kPageRegister = 1;
constexpr std::uint8_t kJitterCleaner =
    0x68;  // page 5, register 0x2a, bits 2:1: which input is selected; 0 is the local clock
constexpr std::uint8_t kEeprom = 0x50;
constexpr unsigned kMostEepromBytes = 256;

struct Bus {
  const Register& configuration;
  const Register& command;
  const Register& data;
  std::uint32_t index = 0;
};

Bus bus_of(CruBus bus) {
  switch (bus) {
    case CruBus::sfp: return {cru::reg("i2c_sfp_configuration"), cru::reg("i2c_sfp_command"), cru::reg("i2c_sfp_data")};
    case CruBus::minipods:
      return {cru::reg("i2c_minipod_configuration"), cru::reg("i2c_minipod_command"), cru::reg("i2c_minipod_data")};
    case CruBus::eeprom:
      return {cru::reg("i2c_eeprom_configuration"), cru::reg("i2c_eeprom_command"), cru::reg("i2c_eeprom_data")};
    default: break;
  }
  return {cru::reg("i2c_pll_configuration"), cru::reg("i2c_pll_command"), cru::reg("i2c_pll_data"),
          static_cast<std::uint32_t>(bus) - static_cast<std::uint32_t>(CruBus::si5344)};
}

/// Sends one command and reads its answer; the caller holds the lock.
Result<std::uint8_t> exchange(Card& card, const Bus& bus, std::uint8_t chip, std::uint8_t reg, std::uint8_t value,
                              std::uint32_t command) {
  const std::uint32_t word = std::uint32_t{chip} << 16 | std::uint32_t{reg} << 8 | value;
  RODEO_TRY(card.write(bus.command, kReset, bus.index));
  RODEO_TRY(card.write(bus.command, kIdle, bus.index));
  RODEO_TRY(card.write(bus.configuration, word, bus.index));
  RODEO_TRY(card.write(bus.command, command, bus.index));
  RODEO_TRY(card.write(bus.command, kIdle, bus.index));
  CardWait wait(kBusPatience);
  while (true) {
    const auto answer = RODEO_TRY(card.read(bus.data, bus.index));
    if ((answer & kReady) != 0) return static_cast<std::uint8_t>(answer);
    if (wait.over())
      return std::unexpected(Error{"card.i2c",
                                   fmt::format("chip {:#x} did not answer within {} ms", chip, kBusPatience.count()),
                                   card.address().text(), "it may not be fitted; a power cycle frees a bus that hangs"});
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

Result<std::uint8_t> read_locked(Card& card, CruBus bus, std::uint8_t chip, std::optional<std::uint8_t> page,
                                 std::uint8_t reg) {
  RODEO_TRY(require_type(card, CardType::cru, "I2C"));
  const auto alone = RODEO_TRY(card.lock(pci::kConfigurationByte, "the I2C of " + card.address().text(), kLockPatience));
  const Bus where = bus_of(bus);
  if (page) RODEO_TRY(exchange(card, where, chip, kPageRegister, *page, kWrite));
  return exchange(card, where, chip, reg, 0, kRead);
}

}  // namespace

Result<std::uint8_t> read_i2c(Card& card, CruBus bus, std::uint8_t chip, std::uint8_t reg) {
  return read_locked(card, bus, chip, std::nullopt, reg);
}

Result<std::uint8_t> read_i2c_page(Card& card, CruBus bus, std::uint8_t chip, std::uint8_t page, std::uint8_t reg) {
  return read_locked(card, bus, chip, page, reg);
}

Result<bool> ttc_clock_in_use(Card& card) {
  const auto selection =
      RODEO_TRY_WITHIN(read_i2c_page(card, CruBus::si5345_2, kJitterCleaner, 5, 0x2a), "cannot ask the jitter cleaner");
  return (selection >> 1 & 3) != 0;
}

Result<std::optional<std::uint32_t>> serial_of_eeprom(Card& card) {
  // The EEPROM has a small JSON object; only the number after the part's name is read.
  static constexpr std::string_view kBefore = "\"pn\":\"p40_fv22b";
  std::string text;
  for (unsigned place = 0; place < kMostEepromBytes; ++place) {
    const auto byte = RODEO_TRY(read_i2c(card, CruBus::eeprom, kEeprom, static_cast<std::uint8_t>(place)));
    if (byte == 0 || byte == 0xff) break;
    text += static_cast<char>(byte);
    if (byte == '}') break;
  }
  std::erase(text, ' ');
  const std::size_t at = text.find(kBefore);
  if (at == std::string::npos) return std::nullopt;
  std::uint32_t serial = 0;
  std::size_t digits = 0;
  for (std::size_t i = at + kBefore.size(); i < text.size() && text[i] != '"'; ++i, ++digits) {
    if (text[i] < '0' || text[i] > '9' || digits == 5) return std::nullopt;
    serial = serial * 10 + static_cast<std::uint32_t>(text[i] - '0');
  }
  return serial == 0 ? std::nullopt : std::optional(serial);
}

}  // namespace rodeo::card
