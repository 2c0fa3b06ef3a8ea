// Provable payload: matches() must agree with its slow twin, "write the chunk again and compare", for any size and any
// damage. Input: 1 byte flags (bit 0: CRC), 2 bytes seed, 2 bytes link, 4 bytes L1 id, then the damage, one byte for
// each byte of the chunk.
#include <cstring>
#include <vector>

#include "formats/provable.h"
#include "fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kParameterBytes = 9;
  if (size < kParameterBytes) return 0;
  std::uint16_t seed, link;
  rodeo::L1Id l1id;
  std::memcpy(&seed, data + 1, sizeof seed);
  std::memcpy(&link, data + 3, sizeof link);
  std::memcpy(&l1id.value, data + 5, sizeof l1id.value);
  const rodeo::formats::Provable provable(seed, (data[0] & 1) != 0);

  std::vector<std::byte> good(size - kParameterBytes);
  provable.write(good, link, l1id);
  FUZZ_CHECK(provable.matches(good, link, l1id) == (good.size() >= rodeo::formats::Provable::kHeaderBytes));
  FUZZ_CHECK(provable.trigger(l1id).bcid < 3564);

  std::vector<std::byte> damaged = good;
  for (std::size_t i = 0; i < damaged.size(); ++i) damaged[i] ^= static_cast<std::byte>(data[kParameterBytes + i]);
  const bool of_earlier_version = damaged.size() > 7 && damaged[7] == std::byte{rodeo::formats::Provable::kUndeclaredMark};
  FUZZ_CHECK(of_earlier_version || provable.matches(damaged, link, l1id) == (damaged == good && good.size() > 7));
  return 0;
}
