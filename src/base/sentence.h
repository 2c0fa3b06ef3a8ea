// Texts for people: counts and errors inside a sentence, and the letters that messages use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace rodeo::base {

/// True if the letter is printable ASCII, as all texts in messages are.
constexpr bool printable(char letter) { return letter >= ' ' && letter <= '~'; }

/// "1 link", "24 links".
inline std::string counted(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

/// An error in a log line or a report, without "error[code]": "run.toml: permission denied; see `rodeo doctor`".
inline std::string in_a_line(const Error& error) {
  return (error.where.empty() ? "" : error.where + ": ") + error.what + (error.next.empty() ? "" : "; " + error.next);
}

}  // namespace rodeo::base
