// The keeper's messages: any requests and replies are read without harm; decoded messages encode to the same bytes.
#include <algorithm>
#include <span>

#include "card/pci/keeper_protocol.h"
#include "fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rodeo::card::pci;
  const std::span<const std::byte> packet(reinterpret_cast<const std::byte*>(data), size);
  if (const auto request = decode_request(packet)) {
    const std::vector<std::byte> again = encode(*request);
    FUZZ_CHECK(std::ranges::equal(again, packet));
  } else {
    FUZZ_CHECK(!request.error().what.empty());
  }
  for (const KeeperOperation operation : {KeeperOperation::open_vfio, KeeperOperation::status}) {
    const auto reply = decode_reply(packet, operation);
    if (reply) {
      FUZZ_CHECK(std::ranges::equal(encode(*reply), packet));
    } else {
      FUZZ_CHECK(!reply.error().code.empty());
      FUZZ_CHECK(!decode_reply(encode(operation, reply.error()), operation));
    }
  }
  return 0;
}
