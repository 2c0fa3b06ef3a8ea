// Every kernel of this CPU finds the same as the plain loop, also if nothing or everything is due.
#include "network/simulator/scan_kernel.h"

#include <gtest/gtest.h>

#include <vector>

#include "network/simulator/random.h"

namespace rodeo::network {
namespace {

TEST(ScanKernels, FindWhatThePlainLoopFinds) {
  Random random(5, 0);
  for (const base::CpuLevel level : {base::CpuLevel::v2, base::CpuLevel::avx2, base::CpuLevel::avx512}) {
    if (level > base::cpu_level()) break;
    const ScanKernel& kernel = scan_kernel(level);
    for (int trial = 0; trial < 2000; ++trial) {
      std::vector<Picoseconds> times(random.below(20) * kScanStep);
      const unsigned shift = static_cast<unsigned>(random.below(60));
      for (Picoseconds& time : times) time = random.below(4) == 0 ? kNever : random.next() >> shift;
      Picoseconds end = random.below(8) == 0 ? kNever : random.next() >> shift;
      if (!times.empty() && random.below(3) == 0) end = times[random.below(times.size())];
      Picoseconds earliest = kNever;
      std::vector<std::uint32_t> expected;
      for (std::uint32_t i = 0; i < times.size(); ++i) {
        earliest = times[i] < earliest ? times[i] : earliest;
        if (times[i] < end) expected.push_back(i);
      }
      std::vector<std::uint32_t> found(times.size());
      found.resize(kernel.before(times.data(), times.size(), end, found.data()));
      EXPECT_EQ(found, expected) << base::cpu_level_name(level);
      EXPECT_EQ(kernel.earliest(times.data(), times.size()), earliest) << base::cpu_level_name(level);
    }
  }
}

}  // namespace
}  // namespace rodeo::network
