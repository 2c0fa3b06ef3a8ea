// Names for the numbers in events: subdetectors, status bits, types. Sources and gaps in docs/reference/formats/event.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/event_format.h"

namespace rodeo::formats {

/// "MDT barrel A side", "NSW Micromegas A"; empty for a code without a name.
std::string_view subdetector_name(std::uint8_t code);

enum class FragmentKind : std::uint8_t { event, rob, rod };

/// Names of the bits that are set in a first status word; a bit without a name becomes "bit 17". Empty for 0.
std::vector<std::string> status_names(std::uint32_t status, FragmentKind kind);

/// Names of the bits in the two status bytes of a chunk header.
std::vector<std::string> felix_status_names(std::uint8_t status);
std::vector<std::string> rodeo_status_names(std::uint8_t status);

std::string run_type_name(std::uint32_t type);  ///< "physics", "test, simulation", "unknown"
std::string_view checksum_name(ChecksumType type);
std::string_view compression_name(Compression compression);

/// Names joined with ", "; "ok" if there are none.
std::string joined_or_ok(const std::vector<std::string>& names);

}  // namespace rodeo::formats
