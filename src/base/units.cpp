#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>

namespace rodeo::base {

namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kKi = 1024.0;
constexpr std::array kSizeUnits = {Unit{"", 1},
                                   Unit{"B", 1},
                                   Unit{"k", 1e3},
                                   Unit{"kB", 1e3},
                                   Unit{"KB", 1e3},
                                   Unit{"M", 1e6},
                                   Unit{"MB", 1e6},
                                   Unit{"G", 1e9},
                                   Unit{"GB", 1e9},
                                   Unit{"T", 1e12},
                                   Unit{"TB", 1e12},
                                   Unit{"Ki", kKi},
                                   Unit{"KiB", kKi},
                                   Unit{"kiB", kKi},
                                   Unit{"Mi", kKi* kKi},
                                   Unit{"MiB", kKi* kKi},
                                   Unit{"Gi", kKi* kKi* kKi},
                                   Unit{"GiB", kKi* kKi* kKi},
                                   Unit{"TiB", kKi* kKi* kKi* kKi}};
constexpr std::array kRateUnits = {Unit{"", 1},      Unit{"Hz", 1},  Unit{"k", 1e3},   Unit{"kHz", 1e3}, Unit{"M", 1e6},
                                   Unit{"MHz", 1e6}, Unit{"G", 1e9}, Unit{"GHz", 1e9}, Unit{"mHz", 1e-3}};
constexpr std::array kBitRateUnits = {Unit{"", 1},         Unit{"bps", 1},     Unit{"bit/s", 1},     Unit{"kbps", 1e3},
                                      Unit{"kbit/s", 1e3}, Unit{"Mbps", 1e6},  Unit{"Mbit/s", 1e6},  Unit{"Gbps", 1e9},
                                      Unit{"Gbit/s", 1e9}, Unit{"Tbps", 1e12}, Unit{"Tbit/s", 1e12}, Unit{"G", 1e9},
                                      Unit{"M", 1e6}};
constexpr std::array kDurationUnits = {Unit{"ns", 1},  Unit{"us", 1e3},   Unit{"µs", 1e3},   Unit{"ms", 1e6},
                                       Unit{"s", 1e9}, Unit{"min", 6e10}, Unit{"h", 3.6e12}, Unit{"d", 8.64e13}};

/// A quantity in the base unit of `units`, or nothing. Exact for whole numbers up to 2^53 and for the units used.
std::expected<double, std::string> parse(std::string_view text, std::span<const Unit> units) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || !std::isfinite(number)) return std::unexpected("it does not start with a number");
  if (number < 0 || std::signbit(number)) return std::unexpected("it is negative");
  std::string_view name(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  for (const Unit& unit : units) {
    if (unit.name == name) return number * unit.factor;
  }
  if (name.empty() && number == 0) return 0.0;
  if (name.empty()) return std::unexpected("it has no unit");
  return std::unexpected(fmt::format("the unit `{}` is not known", name));
}

std::unexpected<Error> refuse(std::string_view code, std::string_view text, std::string_view noun, std::string_view why,
                              std::string_view examples) {
  return std::unexpected(Error{std::string(code),
                               fmt::format("\"{}\" is not a {}: {}", text, noun, why),
                               {},
                               fmt::format("write it like {}", examples)});
}

/// Three digits in total, at most two of them decimals, no trailing zeros; an exponent beyond the last prefix.
std::string three_digits(double value) {
  const double magnitude = std::fabs(value);
  if (magnitude >= 1e6) return fmt::format("{:.3g}", value);
  const int decimals = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : 2;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  const auto bytes = parse(text, kSizeUnits);
  if (!bytes) return refuse("base.bad_size", text, "size", bytes.error(), "2MiB, 5MB, 512k or 4096");
  if (*bytes > 9e18) return refuse("base.bad_size", text, "size", "it is too large", "2MiB, 5MB, 512k or 4096");
  if (*bytes != std::floor(*bytes))
    return refuse("base.bad_size", text, "size", "it is not a whole number of bytes", "2MiB or 1500");
  return static_cast<std::uint64_t>(*bytes);
}

Result<double> parse_rate_hz(std::string_view text) {
  const auto rate = parse(text, kRateUnits);
  if (!rate) return refuse("base.bad_rate", text, "rate", rate.error(), "100kHz, 1.5MHz or 40000");
  return *rate;
}

Result<double> parse_bits_per_second(std::string_view text) {
  const auto rate = parse(text, kBitRateUnits);
  if (!rate) return refuse("base.bad_bit_rate", text, "bit rate", rate.error(), "25Gbps or 100Mbps");
  return *rate;
}

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const auto duration = parse(text, kDurationUnits);
  if (!duration) return refuse("base.bad_duration", text, "duration", duration.error(), "5s, 10ms or 1000us");
  if (*duration > 9e18) return refuse("base.bad_duration", text, "duration", "it is too long", "5s, 10ms or 1000us");
  return std::chrono::nanoseconds{std::llround(*duration)};
}

std::string format_count(double value) {
  struct Prefix {
    double factor;
    std::string_view name;
  };
  static constexpr std::array kPrefixes = {Prefix{1e15, " P"}, Prefix{1e12, " T"}, Prefix{1e9, " G"}, Prefix{1e6, " M"},
                                           Prefix{1e3, " k"}};
  for (const Prefix& prefix : kPrefixes) {
    // 999.6 k reads as "1 M", not as "1000 k".
    if (std::fabs(value) >= prefix.factor * 0.9995) return three_digits(value / prefix.factor) + std::string(prefix.name);
  }
  return three_digits(value);
}

std::string format_quantity(double value, std::string_view unit) {
  std::string text = format_count(value);
  if (text.find(' ') == std::string::npos && !unit.empty() && unit.front() != '/') text += ' ';
  return text.append(unit);
}

std::string format_size(std::uint64_t bytes) {
  struct Binary {
    int shift;
    std::string_view name;
  };
  static constexpr std::array kBinary = {Binary{40, "TiB"}, Binary{30, "GiB"}, Binary{20, "MiB"}, Binary{10, "KiB"}};
  for (const Binary& unit : kBinary) {
    if (bytes != 0 && bytes % (std::uint64_t{1} << unit.shift) == 0)
      return fmt::format("{} {}", bytes >> unit.shift, unit.name);
  }
  return format_quantity(static_cast<double>(bytes), "B");
}

std::string format_duration(std::chrono::nanoseconds duration) {
  const double ns = static_cast<double>(duration.count());
  const double magnitude = std::fabs(ns);
  if (magnitude < 1e3) return three_digits(ns) + " ns";
  if (magnitude < 1e6) return three_digits(ns / 1e3) + " us";
  if (magnitude < 1e9) return three_digits(ns / 1e6) + " ms";
  if (magnitude < 6e10) return three_digits(ns / 1e9) + " s";
  const std::int64_t seconds = duration.count() / 1'000'000'000;
  if (magnitude < 3.6e12) return fmt::format("{} min {} s", seconds / 60, std::abs(seconds % 60));
  return fmt::format("{} h {} min", seconds / 3600, std::abs(seconds / 60 % 60));
}

}  // namespace rodeo::base
