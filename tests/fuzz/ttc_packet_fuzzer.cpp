// TTC packets: any bytes are refused or decoded; decoded packets encode to the same bytes, and the trigger extractor agrees
// with read().
#include <algorithm>
#include <array>
#include <vector>

#include "formats/ttc_packet.h"
#include "fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rodeo::formats;
  const std::vector<std::byte> chunk(reinterpret_cast<const std::byte*>(data),
                                     reinterpret_cast<const std::byte*>(data) + size);
  const auto packet = TtcPacket::read(chunk);

  const rodeo::ChunkRun run{.data = chunk.data(), .size = static_cast<std::uint32_t>(size), .count = 1};
  TtcTriggerExtractor extractor;
  std::uint32_t l1id = 0;
  std::uint16_t bcid = 0;
  FUZZ_CHECK((extractor.extract(run, 0, 1, &l1id, &bcid) == 1) == packet.has_value());
  if (!packet) return 0;
  FUZZ_CHECK(l1id == packet->l1id.value && bcid == packet->bcid);
  FUZZ_CHECK(extractor.trigger_type(chunk) == static_cast<std::uint8_t>(packet->trigger_type));

  std::array<std::byte, TtcPacket::kTaggedBytes> written;
  const std::size_t written_bytes = packet->write(written);
  FUZZ_CHECK(written_bytes <= size);
  FUZZ_CHECK(TtcPacket::read(std::span{written}.first(written_bytes)) == packet);
  return 0;
}
