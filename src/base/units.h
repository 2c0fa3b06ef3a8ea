// Quantities as people write them: sizes, rates, bit rates and durations, parsed from text and printed for reading.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace rodeo::base {

/// Bytes. "2MiB" (1024s), "5MB" and "512k" (1000s), "4096", "4096B". Error base.bad_size.
Result<std::uint64_t> parse_size(std::string_view text);

/// Hertz. "100kHz", "1.5 MHz", "40000". Error base.bad_rate.
Result<double> parse_rate_hz(std::string_view text);

/// Bits per second. "25Gbps", "100 Mbit/s", "1e9". Error base.bad_bit_rate.
Result<double> parse_bits_per_second(std::string_view text);

/// "5s", "1000us", "10ms", "1.5 min", "2h", "250ns". A number without a unit is refused as ambiguous, except "0".
/// Error base.bad_duration.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

/// Three digits and a decimal prefix: 19.2e6 gives "19.2 M", 12 gives "12", 0.5 gives "0.5".
std::string format_count(double value);

/// "19.2 M/s", "768 MB/s": format_count with a unit behind it.
std::string format_quantity(double value, std::string_view unit);

/// "2 MiB" if the size is a whole number of binary units, otherwise "768 MB".
std::string format_size(std::uint64_t bytes);

/// "10 ms", "1.5 s", "2 min 5 s".
std::string format_duration(std::chrono::nanoseconds duration);

}  // namespace rodeo::base
