// Superpages as a card may write them: any bytes are finite work, and the check agrees with its slow twin.
#include "formats/slow_superpage_check.h"
#include "fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rodeo::formats;
  if (size < 6) return 0;
  const SuperpageCheckSettings settings{.pattern = static_cast<PagePattern>(data[0] % 5),
                                        .page_bytes = 32U * (1 + data[1]),
                                        .packet_counter_max = data[2],
                                        .every = 1U + data[3] % 255,
                                        .time_frame_orbits = data[4],
                                        .resynchronise = (data[5] & 1) != 0};
  SuperpageCheck fast(settings);
  test::SlowSuperpageCheck slow(settings);
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data + 6),
                                     reinterpret_cast<const std::byte*>(data + size));
  const std::size_t half = bytes.size() * (data[5] >> 1) / 128;
  for (const auto superpage : {std::span(bytes).first(half), std::span(bytes).subspan(half)}) {
    fast.check(3, superpage);
    slow.check(3, superpage);
  }
  for (std::size_t i = 0; i < kSuperpageCounters; ++i)
    FUZZ_CHECK(fast.counters().read(static_cast<SuperpageCounter>(i)) == slow.counts[i]);
  FUZZ_CHECK(fast.findings().size() == fast.errors());
  return 0;
}
