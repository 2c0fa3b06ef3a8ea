// What the laboratory reads from outside: requests and replies, lines of agents, run orders, lists of hosts. Whatever is understood comes back
// as it was, and a run order that is accepted ends. Input: 1 byte choice, then the bytes.
#include <algorithm>
#include <cstring>
#include <string>

#include "fuzz/check.h"
#include "network/laboratory/hosts.h"
#include "network/laboratory/message.h"
#include "network/laboratory/traffic_line.h"

namespace {

using namespace rodeo::network::laboratory;

void messages(std::span<const std::byte> bytes) {
  std::array<std::byte, kMessageBytes> one{};
  for (; bytes.size() >= one.size(); bytes = bytes.subspan(one.size())) {
    std::copy_n(bytes.begin(), one.size(), one.begin());
    for (const std::uint32_t magic : {kRequestMagic, kReplyMagic}) {
      const auto message = decode(magic, one);
      if (!message) continue;
      FUZZ_CHECK(message->bytes <= kLargestFragmentBytes);
      FUZZ_CHECK(encode(magic, *message) == one);
    }
  }
}

void lines(const std::string& text) {
  const Line line = Line::parse(text);
  FUZZ_CHECK(Line::parse(line.str()).str() == line.str());
  (void)line.number("rate_hz");
  const auto order = run_order_of(line);
  if (!order) return;
  FUZZ_CHECK(order->settings.traffic.event_rate_hz * order->settings.seconds <= 1e9);
  FUZZ_CHECK(line_of(*run_order_of(Line::parse(line_of(*order).str()))).str() == line_of(*order).str());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 3 == 0) messages(std::as_bytes(std::span(text)));
  if (data[0] % 3 == 1) lines(text);
  if (data[0] % 3 == 2) {
    const auto hosts = parse_hosts(text, "fuzz");
    if (hosts) {
      FUZZ_CHECK(hosts->size() >= 2);
      for (const Host& host : *hosts) FUZZ_CHECK(!host.command.empty() && !host.address.empty());
    }
  }
  return 0;
}
