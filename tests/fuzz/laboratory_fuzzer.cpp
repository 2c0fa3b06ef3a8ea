// External input of the laboratory: requests and replies, run orders, lists of hosts. Accepted input encodes to the same
// content, and an accepted run order ends. Input: 1 byte choice, then the bytes.
#include <algorithm>
#include <cstring>
#include <string>

#include "fuzz/check.h"
#include "network/laboratory/hosts.h"
#include "network/laboratory/message.h"
#include "network/laboratory/run_order.h"

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

void orders(const std::string& text) {
  const auto said = rodeo::settings::Json::parse(text);
  if (!said) return;
  const auto order = run_order_of(*said);
  if (!order) return;
  FUZZ_CHECK(order->scenario.traffic.event_rate_hz * static_cast<double>(order->scenario.duration_ns) <= 1e18);
  const std::string again = json_of(*order).dump(0);
  FUZZ_CHECK(json_of(*run_order_of(*rodeo::settings::Json::parse(again))).dump(0) == again);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 3 == 0) messages(std::as_bytes(std::span(text)));
  if (data[0] % 3 == 1) orders(text);
  if (data[0] % 3 == 2) {
    const auto hosts = parse_hosts(text, "fuzz");
    if (hosts) {
      FUZZ_CHECK(hosts->size() >= 2);
      for (const Host& host : *hosts) FUZZ_CHECK(!host.command.empty() && !host.address.empty());
    }
  }
  return 0;
}
