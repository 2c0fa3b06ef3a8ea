#include "formats/fid.h"

#include <fmt/format.h>

namespace rodeo::formats {

std::string to_text(Fid fid) { return fmt::format("0x{:016x}", fid.value); }
std::string to_text(SourceId id) { return fmt::format("0x{:08x}", id.value); }

std::optional<std::uint16_t> card_elink_of(Fid fid) {
  if (fid.link() >= 32 || fid.is_virtual()) return std::nullopt;
  return static_cast<std::uint16_t>(fid.link() << 6 | fid.elink());
}

}  // namespace rodeo::formats
