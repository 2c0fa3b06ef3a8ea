// A plug-in as a detector expert writes one: an extractor for chunks that begin with a 16-bit L1 id.
#include <rodeo/plugin.h>

namespace {

rodeo::TriggerInfo extract(std::span<const std::byte> chunk) {
  if (chunk.size() < 2) return {.valid = false};
  return {.l1id = std::to_integer<std::uint32_t>(chunk[0]) | std::to_integer<std::uint32_t>(chunk[1]) << 8};
}

}  // namespace

RODEO_PLUGIN(registry) {
  registry.add_extractor({.name = "sixteen_bits", .help = "16-bit L1 id in the first two bytes"}, {.l1id_bits = 16},
                         &extract);
}
