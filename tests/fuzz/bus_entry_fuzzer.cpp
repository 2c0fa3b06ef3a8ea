// Files on the bus: any bytes are refused or read; an entry is the same after it is written and read again.
#include <string_view>

#include "fuzz/check.h"
#include "transport/bus.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rodeo::transport;
  const auto entry = parse_bus_entry({reinterpret_cast<const char*>(data), size}, "a.json");
  if (!entry) {
    FUZZ_CHECK(entry.error().code == "transport.bus_entry");
    return 0;
  }
  FUZZ_CHECK(entry->name == "a" && entry->port > 0 && entry->links.size() <= kMostBusLinks);
  const auto again = parse_bus_entry(bus_entry_text(*entry), "a.json");
  FUZZ_CHECK(again && *again == *entry);
  return 0;
}
