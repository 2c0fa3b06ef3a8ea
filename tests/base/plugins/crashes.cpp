// A plug-in that ends the process at L1 id 100: by itself, or in a function of the C library that it calls.
#include <rodeo/plugin.h>

#include <cstring>

namespace {

volatile std::uintptr_t nowhere = 8;

std::uint32_t l1id_of(std::span<const std::byte> chunk) {
  std::uint32_t l1id = 0;
  if (chunk.size() >= sizeof l1id) std::memcpy(&l1id, chunk.data(), sizeof l1id);
  return l1id;
}

rodeo::TriggerInfo extract(std::span<const std::byte> chunk) {
  const std::uint32_t l1id = l1id_of(chunk);
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  if (l1id == 100) return {.l1id = *reinterpret_cast<volatile std::uint32_t*>(nowhere)};
  return {.l1id = l1id};
}

bool check(std::span<const std::byte> chunk) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return l1id_of(chunk) != 100 || std::strlen(reinterpret_cast<const char*>(nowhere)) > 5;
}

}  // namespace

RODEO_PLUGIN(registry) {
  registry.add_extractor({.name = "crashes", .help = "reads where nothing is"}, {.l1id_bits = 24}, &extract);
  registry.add_checker({.name = "crashes", .help = "has the C library read there"}, &check);
}
