// The trigger authority's messages: any bytes are read without harm; decoded messages encode to the same bytes.
#include <algorithm>
#include <span>

#include "fuzz/check.h"
#include "trigger/protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rodeo::trigger::protocol;
  std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  // Successive messages, as on a socket.
  while (bytes.size() >= kHeaderBytes) {
    const auto header = decode_header(bytes.first<kHeaderBytes>());
    if (!header) {
      FUZZ_CHECK(!header.error().empty());
      return 0;
    }
    FUZZ_CHECK(header->body_bytes <= kMostBodyBytes);
    if (bytes.size() < kHeaderBytes + header->body_bytes) return 0;
    const auto whole = bytes.first(kHeaderBytes + header->body_bytes);
    const auto message = decode(header->type, whole.subspan(kHeaderBytes));
    if (!message) {
      FUZZ_CHECK(!message.error().empty());
      return 0;
    }
    FUZZ_CHECK(message->index() + 1 == static_cast<std::size_t>(header->type));
    std::vector<std::byte> again;
    encode(*message, again);
    const bool other_version = std::visit(
        [](const auto& one) {
          if constexpr (requires { one.version; }) return one.version != kVersion;
          return false;
        },
        *message);
    if (!other_version) FUZZ_CHECK(std::ranges::equal(again, whole));
    if (const auto* triggers = std::get_if<Triggers>(&*message)) {
      std::uint64_t sequence = triggers->sequence;
      FUZZ_CHECK(triggers->ranges.size() <= kMostRanges && triggers->ranges.size() == triggers->firsts.size());
      for (const auto& range : triggers->ranges) {
        FUZZ_CHECK(range.sequence == sequence && range.count > 0);
        FUZZ_CHECK((range.l1id & 0xffffffU) + range.count <= 0x1000000U);
        sequence += range.count;
      }
    }
    bytes = bytes.subspan(whole.size());
  }
  return 0;
}
