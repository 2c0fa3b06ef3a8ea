// A plug-in that throws for some chunks, against the rules: an exception every tenth event, another type every hundredth.
#include <rodeo/plugin.h>

#include <cstring>
#include <stdexcept>

namespace {

std::uint32_t l1id_of(std::span<const std::byte> chunk) {
  std::uint32_t l1id = 0;
  if (chunk.size() >= sizeof l1id) std::memcpy(&l1id, chunk.data(), sizeof l1id);
  return l1id;
}

rodeo::TriggerInfo extract(std::span<const std::byte> chunk) {
  const std::uint32_t l1id = l1id_of(chunk);
  if (l1id % 10 == 0) throw std::runtime_error("ten at a time");
  return {.l1id = l1id};
}

bool check(std::span<const std::byte> chunk) {
  if (l1id_of(chunk) % 100 == 0) throw 100;
  return true;
}

}  // namespace

RODEO_PLUGIN(registry) {
  registry.add_extractor({.name = "throws_on_data", .help = "throws at every tenth event"}, {.l1id_bits = 24}, &extract);
  registry.add_checker({.name = "throws_on_data", .help = "throws at every hundredth event"}, &check);
}
