// Messages of the network's control connections: any bytes are refused or decoded; decoded messages encode to the same
// bytes. Two sides that get them never trust a side without their secret.
#include <algorithm>
#include <cstring>
#include <vector>

#include "formats/network_control.h"
#include "fuzz/check.h"
#include "transport/handshake.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rodeo::formats;
  using rodeo::transport::Handshake;
  Handshake sides[] = {{Handshake::Side::subscriber, {}, "secret"}, {Handshake::Side::publisher, {}, "secret"}};
  const std::vector<std::byte> all(reinterpret_cast<const std::byte*>(data),
                                   reinterpret_cast<const std::byte*>(data) + size);
  std::span<const std::byte> rest(all);
  for (;;) {
    const std::vector<std::byte> exact(rest.begin(), rest.end());  // exact size: the sanitizer detects reads beyond the end
    const auto taken = parse_control(exact);
    if (!taken || !*taken) break;
    const std::size_t bytes = (*taken)->bytes;
    FUZZ_CHECK(bytes >= kControlHeaderBytes && bytes <= exact.size());
    const auto before = parse_control(std::span(exact).first(bytes - 1));
    FUZZ_CHECK(before && !*before);
    std::vector<std::byte> written;
    append_control(written, (*taken)->message);
    const auto* hello = std::get_if<ControlHello>(&(*taken)->message);
    if (hello != nullptr && hello->version != kControlVersion) {
      const auto again = parse_control(written);
      FUZZ_CHECK(again && *again && (*again)->message == (*taken)->message);
    } else {
      FUZZ_CHECK(
          std::equal(written.begin(), written.end(), exact.begin(), exact.begin() + static_cast<std::ptrdiff_t>(bytes)));
    }
    for (Handshake& side : sides) {
      written.clear();
      const bool good = side.on_message((*taken)->message, written).has_value();
      const auto said = parse_control(written);
      FUZZ_CHECK(written.empty() || (said && *said && (*said)->bytes == written.size()));
      FUZZ_CHECK(good || written.empty() || std::holds_alternative<ControlRefuse>((*said)->message));
      FUZZ_CHECK(!side.done());
    }
    rest = rest.subspan(bytes);
  }
  return 0;
}
