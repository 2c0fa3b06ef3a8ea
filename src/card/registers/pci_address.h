// The address of a PCI function as users write it, for the driver and the emulator.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace rodeo::card_registers {

/// Domain, bus, device and function, as in 0000:3b:00.0.
struct PciAddress {
  std::uint16_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t device = 0;    // 0-31
  std::uint8_t function = 0;  // 0-7
  auto operator<=>(const PciAddress&) const = default;
  /// "0000:3b:00.0".
  std::string text() const;
  /// Parses an address with or without the domain; the whole text must be an address. Error card.bad_address.
  static Result<PciAddress> parse(std::string_view text);
};

}  // namespace rodeo::card_registers
