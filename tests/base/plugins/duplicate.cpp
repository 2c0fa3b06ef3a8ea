// A plug-in whose component has the same name as one of another plug-in.
#include <rodeo/plugin.h>

RODEO_PLUGIN(registry) {
  registry.add_extractor({.name = "sixteen_bits", .help = "another"}, {.l1id_bits = 16},
                         [](std::span<const std::byte>) -> rodeo::TriggerInfo { return {}; });
}
