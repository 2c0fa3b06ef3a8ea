// From-host packets: any bytes are refused or read and joined within their limit; joined messages are written as they were
// read.
#include <vector>

#include "formats/from_host.h"
#include "fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rodeo::formats;
  if (size == 0) return 0;
  const auto length = data[0] % 2 == 0 ? FromHostLength::words : FromHostLength::bytes;
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 1,
                                     reinterpret_cast<const std::byte*>(data) + size);
  constexpr std::size_t kMost = 200;
  FromHostMessages messages(kMost);
  for (std::size_t at = 0; at + kFromHostPacketBytes <= bytes.size(); at += kFromHostPacketBytes) {
    const auto packet = read_from_host(std::span(bytes).subspan(at).first<kFromHostPacketBytes>(), length);
    if (!packet) continue;
    FUZZ_CHECK(packet->elink < 2048 && packet->bytes <= kFromHostPayloadBytes);
    const std::size_t begun = messages.begun(packet->elink);
    const auto message = messages.add(*packet);
    FUZZ_CHECK(messages.begun(packet->elink) <= kMost);
    if (!message) continue;
    FUZZ_CHECK(message->size() <= kMost && message->size() == begun + packet->bytes);
    std::vector<std::byte> written;
    append_from_host(written, packet->elink, *message, length);
    FromHostMessages again(kMost);
    std::vector<std::byte> copy(message->begin(), message->end());
    for (std::size_t of = 0; of < written.size(); of += kFromHostPacketBytes) {
      const auto reread = read_from_host(std::span(written).subspan(of).first<kFromHostPacketBytes>(), length);
      FUZZ_CHECK(reread.has_value());
      const auto whole = again.add(*reread);
      FUZZ_CHECK(whole.has_value() == (of + kFromHostPacketBytes == written.size()));
      if (whole) FUZZ_CHECK(std::vector<std::byte>(whole->begin(), whole->end()) == copy);
    }
  }
  return 0;
}
