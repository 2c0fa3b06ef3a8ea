// Texts for people: how counts and errors stand in the middle of a sentence, and which letters there are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace rodeo::base {

/// Whether the letter is printable ASCII: what texts in messages consist of.
constexpr bool printable(char letter) { return letter >= ' ' && letter <= '~'; }

/// "1 link", "24 links".
inline std::string counted(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

/// An error as a log line or a report has it, where "error[code]" would be one word too many: "run.toml: permission denied; see `rodeo doctor`".
inline std::string in_a_line(const Error& error) {
  return (error.where.empty() ? "" : error.where + ": ") + error.what + (error.next.empty() ? "" : "; " + error.next);
}

}  // namespace rodeo::base
