// Superpages of a card: any bytes take finite work, the check agrees with its slow twin, and the inspection as a file works.
#include "formats/slow_superpage_check.h"
#include "formats/superpage_dump.h"
#include "fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rodeo::formats;
  if (size < 6) return 0;
  const SuperpageCheckSettings settings{.pattern = static_cast<PagePattern>(data[0] % 5),
                                        .page_bytes = 32U * (1 + data[1]),
                                        .packet_counter_max = data[2],
                                        .every = 1U + data[3] % 255,
                                        .heartbeat_frames = (data[5] & 2) != 0,
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
  fast.finish();
  for (std::size_t i = 0; i < kSuperpageCounters; ++i)
    FUZZ_CHECK(fast.count(static_cast<SuperpageCounter>(i)) == slow.count(i));
  FUZZ_CHECK(fast.findings().size() <= fast.errors());

  // All superpages as a file.
  const SuperpageDumpInfo info = inspect_superpage_dump(bytes, 1);
  std::uint64_t errors = 0;
  for (std::size_t i = 0; i < kSuperpageCounters; ++i)
    errors += is_error(static_cast<SuperpageCounter>(i)) ? info.counters[i] : 0;
  FUZZ_CHECK(info.findings.total() >= errors);  // silent links are findings, too
  for (const Finding& finding : info.findings.listed()) FUZZ_CHECK(finding.offset < bytes.size());
  for_each_page(bytes, [&](std::size_t at) {
    FUZZ_CHECK(dump_page(bytes, at, "page").fields.size() == 16);
    return true;
  });
  return 0;
}
