// A plug-in that brings a component under a name that another plug-in has taken.
#include <rodeo/plugin.h>

RODEO_PLUGIN(registry) {
  registry.add_extractor({.name = "sixteen_bits", .help = "another"}, {.l1id_bits = 16},
                         [](std::span<const std::byte>) -> rodeo::TriggerInfo { return {}; });
}
