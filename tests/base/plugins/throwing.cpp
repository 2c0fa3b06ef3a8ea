// A plug-in whose registration fails half-way.
#include <rodeo/plugin.h>

#include <stdexcept>

RODEO_PLUGIN(registry) {
  registry.add_checker({.name = "half_registered", .help = "never seen"}, [](std::span<const std::byte>) { return true; });
  throw std::runtime_error("the calibration file is gone");
}
