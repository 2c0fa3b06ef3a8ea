#include "formats/event_ids.h"

#include <fmt/format.h>

#include <charconv>

namespace rodeo::formats {
namespace {

constexpr std::string_view kBits = "l1id_bits=";
constexpr std::string_view kCounter = "l1id_counter=32";
constexpr unsigned kWithResets = 32;  // the value of l1id_bits for 24 bits and the reset counter

}  // namespace

std::string IdLayout::text() const {
  if (!has_resets && bits == 32) return std::string(kCounter);
  return fmt::format("{}{}", kBits, has_resets ? kWithResets : bits);
}

std::optional<IdLayout> IdLayout::parse(std::string_view text) {
  if (text == kCounter) return IdLayout{.bits = 32, .has_resets = false};
  if (!text.starts_with(kBits)) return std::nullopt;
  unsigned number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data() + kBits.size(), end, number);
  if (error != std::errc{} || at != end || number == 0 || number > kWithResets) return std::nullopt;
  if (number == kWithResets) return IdLayout{};
  return IdLayout{.bits = static_cast<std::uint8_t>(number), .has_resets = false};
}

}  // namespace rodeo::formats
