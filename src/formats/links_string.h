// Parses the free string with the links of a ROB (docs/reference/formats/eventstorage-file.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "rodeo/ids.h"

namespace rodeo::formats {

struct NamedLinks {
  SourceId source_id;
  std::vector<std::uint32_t> link_ids;  ///< the links, in the order of the bitmaps in status words
};

/// Parses "Rodeo-Links=0x00610001: 0x00540000+8 0x00580000"; nothing for any other text, or for more than 65536 links.
std::optional<NamedLinks> read_links_string(std::string_view text);

}  // namespace rodeo::formats
