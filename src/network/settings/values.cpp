// Values of settings from text, and why not.
#include "network/settings/values.h"

#include <cmath>

#include <fmt/core.h>

namespace rodeo::network::settings {

std::unexpected<Error> bad(std::string_view text, std::string_view wanted) {
  return std::unexpected(Error{"network.bad_setting", fmt::format("\"{}\" is not {}", text, wanted)});
}

Result<void> read_number(double& value, std::string_view text) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 0)) return bad(text, "a number of 0 or more");
  return {};
}

Result<void> read_boolean(bool& value, std::string_view text) {
  if (text != "true" && text != "false") return bad(text, "true or false");
  value = text == "true";
  return {};
}

Result<void> read_size_or(std::optional<std::uint64_t>& value, std::string_view text, std::string_view none) {
  if (text == none) {
    value.reset();
    return {};
  }
  std::uint64_t bytes = 0;
  if (auto done = read_size(bytes, text); !done) return done;
  value = bytes;
  return {};
}

Result<void> read_bit_rate(std::uint64_t& value, std::string_view text) {
  const auto bits = base::parse_bits_per_second(text);
  if (!bits) return std::unexpected(bits.error());
  if (!(*bits >= 0 && *bits <= 1e15)) return bad(text, "a bit rate of at most 1000 Tbps");
  value = static_cast<std::uint64_t>(*bits);
  return {};
}

Result<void> read_rate(double& value, std::string_view text) {
  const auto hertz = base::parse_rate_hz(text);
  if (!hertz) return std::unexpected(hertz.error());
  value = *hertz;
  return {};
}

Result<void> read_duration(std::uint64_t& value_ns, std::string_view text) {
  double seconds = 0;
  if (read_number(seconds, text)) {
    if (seconds > 1e9) return bad(text, "a duration");
    value_ns = static_cast<std::uint64_t>(std::llround(seconds * 1e9));
    return {};
  }
  const auto duration = base::parse_duration(text);
  if (!duration) return std::unexpected(duration.error());
  if (duration->count() < 0) return bad(text, "a duration of 0 or more");
  value_ns = static_cast<std::uint64_t>(duration->count());
  return {};
}

std::string seconds(std::uint64_t ns) { return fmt::format("{}", static_cast<double>(ns) / 1e9); }

std::string bytes_or(const std::optional<std::uint64_t>& bytes, std::string_view none) {
  return bytes ? std::to_string(*bytes) : std::string(none);
}

}  // namespace rodeo::network::settings
