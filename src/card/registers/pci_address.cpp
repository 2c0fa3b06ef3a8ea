#include "card_registers/pci_address.h"

#include <fmt/core.h>

#include <array>
#include <charconv>

namespace rodeo::card_registers {

std::string PciAddress::text() const { return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, device, function); }

Result<PciAddress> PciAddress::parse(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return std::unexpected(Error{"card.bad_address", fmt::format("{} is not a PCI address: {}", text, why), "",
                                 "write bus:device.function in hexadecimal, for example 3b:00.0 or 0000:3b:00.0"});
  };
  // Fields from the right: function, device, bus and, if there is one more, domain.
  const auto dot = text.rfind('.');
  if (dot == std::string_view::npos) return wrong("there is no dot before the function");
  std::array<unsigned, 4> fields{};  // domain, bus, device, function
  constexpr std::array<unsigned, 4> kLimits{0xffff, 0xff, 0x1f, 7};
  constexpr std::array<std::size_t, 4> kDigits{4, 2, 2, 1};
  std::string_view rest = text.substr(0, dot);
  std::array<std::string_view, 4> parts{};
  parts[3] = text.substr(dot + 1);
  for (int field = 2; field >= 0; --field) {
    const auto colon = rest.rfind(':');
    parts[static_cast<std::size_t>(field)] = colon == std::string_view::npos ? rest : rest.substr(colon + 1);
    if (colon == std::string_view::npos) {
      if (field == 2) return wrong("there is no colon between bus and device");
      if (field == 1) parts[0] = "0";
      rest = {};
      break;
    }
    if (field == 0) return wrong("it has more than three colons and dots");
    rest = rest.substr(0, colon);
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string_view part = parts[i];
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), fields[i], 16);
    if (part.empty() || part.size() > kDigits[i] || error != std::errc{} || end != part.data() + part.size())
      return wrong(fmt::format("\"{}\" is not one of its numbers", part));
    if (fields[i] > kLimits[i]) return wrong(fmt::format("{:x} is above {:x}", fields[i], kLimits[i]));
  }
  return PciAddress{static_cast<std::uint16_t>(fields[0]), static_cast<std::uint8_t>(fields[1]),
                    static_cast<std::uint8_t>(fields[2]), static_cast<std::uint8_t>(fields[3])};
}

}  // namespace rodeo::card_registers
