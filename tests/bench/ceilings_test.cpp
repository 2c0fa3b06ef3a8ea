// The ceilings of benches: they access all of the given memory, and no other memory.
#include "bench/card/ceilings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace rodeo::bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::chrono::milliseconds kShort{1};  // this allows eight tries of at least a mebibyte

TEST(Ceilings, StoresGoRoundInTheWholeMemory) {
  std::vector<std::byte> memory(6 * kMiB + 64);
  const std::size_t skipped = -reinterpret_cast<std::uintptr_t>(memory.data()) % 16;
  const std::span inside = std::span(memory).subspan(skipped, 6 * kMiB);
  EXPECT_GT(store_ceiling(inside, kShort), 0);
  EXPECT_TRUE(std::ranges::all_of(inside, [](std::byte b) { return b == std::byte{0x5a}; }));
  EXPECT_EQ(memory.back(), std::byte{0});
}

TEST(Ceilings, CopiesFillTheOtherHalf) {
  std::vector<std::byte> memory(6 * kMiB);
  std::fill_n(memory.begin(), 3 * kMiB, std::byte{7});
  EXPECT_GT(copy_ceiling(memory, kShort), 0);
  EXPECT_EQ(std::ranges::count(memory, std::byte{7}), static_cast<std::ptrdiff_t>(6 * kMiB));
}

TEST(Ceilings, TooLittleMemoryHasNone) {
  std::vector<std::byte> memory(kMiB);
  EXPECT_EQ(store_ceiling(std::span(memory).first(kMiB - 1), kShort), 0);
  EXPECT_EQ(copy_ceiling(memory, kShort), 0);
}

}  // namespace
}  // namespace rodeo::bench
