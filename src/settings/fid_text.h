// FELIX identifiers as text, single and in ranges (docs/reference/formats/identifiers.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "rodeo/ids.h"

namespace rodeo::settings {

/// Reads one FID, hexadecimal with 0x or decimal. Errors: formats.fid.
Result<Fid> parse_fid(std::string_view text);

/// Reads one FID or a range `FID+N` of N consecutive E-links. Errors: formats.fid.
Result<std::vector<Fid>> parse_fid_range(std::string_view text);

/// The E-link `n` places after `first`; e-link 63 is followed by e-link 0 of the next link. Nothing beyond link 8191.
std::optional<Fid> advance(Fid first, std::uint32_t n);

}  // namespace rodeo::settings
