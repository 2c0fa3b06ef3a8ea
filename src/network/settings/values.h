// Values of settings from text and back: numbers, sizes, rates, durations and names.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace rodeo::network::settings {

// Errors of reading: network.bad_setting, those of base/units.h; the value is then not to be used.

/// The error for text that is not what is wanted: "a whole number of 0 or more".
std::unexpected<Error> bad(std::string_view text, std::string_view wanted);

template <typename T>
Result<void> read_count(T& value, std::string_view text) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return bad(text, "a whole number of 0 or more");
  return {};
}

Result<void> read_number(double& value, std::string_view text);
Result<void> read_boolean(bool& value, std::string_view text);

template <typename T>
Result<void> read_size(T& value, std::string_view text) {
  const auto bytes = base::parse_size(text);
  if (!bytes) return std::unexpected(bytes.error());
  if (*bytes > std::numeric_limits<T>::max()) return bad(text, "a size that fits");
  value = static_cast<T>(*bytes);
  return {};
}

/// A size, or the word that stands for none.
Result<void> read_size_or(std::optional<std::uint64_t>& value, std::string_view text, std::string_view none);
Result<void> read_bit_rate(std::uint64_t& value, std::string_view text);
Result<void> read_rate(double& value, std::string_view text);
/// "1us", or a number of seconds, which is what a base unit is to a program.
Result<void> read_duration(std::uint64_t& value_ns, std::string_view text);

/// In the base unit, as read_duration() takes it.
std::string seconds(std::uint64_t ns);
std::string bytes_or(const std::optional<std::uint64_t>& bytes, std::string_view none);

/// The names of an enumeration's values.
template <typename Enum, std::size_t n>
struct Names {
  std::array<std::pair<std::string_view, Enum>, n> names;

  Result<void> read(Enum& value, std::string_view text) const {
    for (const auto& [name, one] : names) {
      if (name == text) {
        value = one;
        return {};
      }
    }
    std::string all;
    for (const auto& [name, one] : names) all += (all.empty() ? "" : ", ") + std::string(name);
    return bad(text, "one of " + all);
  }
  std::string text(Enum value) const {
    for (const auto& [name, one] : names) {
      if (one == value) return std::string(name);
    }
    return {};
  }
};

}  // namespace rodeo::network::settings
