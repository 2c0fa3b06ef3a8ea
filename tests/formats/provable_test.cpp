#include "formats/provable.h"

#include <gtest/gtest.h>

#include <vector>

namespace {

using rodeo::L1Id;
using rodeo::formats::Provable;

class ProvablePayload : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ProvablePayload, AnyFlippedBitIsFound) {
  for (const bool crc : {false, true}) {
    const Provable provable(7, crc);
    std::vector<std::byte> chunk(GetParam());
    provable.write(chunk, 3, L1Id::of(1, 99));
    ASSERT_TRUE(provable.matches(chunk, 3, L1Id::of(1, 99)));
    for (std::size_t bit = 0; bit < chunk.size() * 8; ++bit) {
      chunk[bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_FALSE(provable.matches(chunk, 3, L1Id::of(1, 99))) << "bit " << bit;
      chunk[bit / 8] ^= std::byte{1} << (bit % 8);
    }
  }
}

TEST_P(ProvablePayload, BelongsToOneLinkAndOneTrigger) {
  if (GetParam() < 12) GTEST_SKIP() << "too short to carry a key";
  const Provable provable(7);
  std::vector<std::byte> chunk(GetParam());
  provable.write(chunk, 3, L1Id::of(1, 99));
  EXPECT_FALSE(provable.matches(chunk, 4, L1Id::of(1, 99)));
  EXPECT_FALSE(provable.matches(chunk, 3, L1Id::of(1, 100)));
  EXPECT_FALSE(Provable(8).matches(chunk, 3, L1Id::of(1, 99)));
}

TEST_P(ProvablePayload, OfANarrowFormatCarriesTheLowBitsAndBelongsToTheWholeId) {
  if (GetParam() < 12) GTEST_SKIP() << "too short to carry a key";
  const Provable provable(7, false, 8);
  std::vector<std::byte> chunk(GetParam());
  provable.write(chunk, 3, L1Id::of(1, 0x345));
  EXPECT_EQ(chunk[0], std::byte{0x45});
  EXPECT_EQ(chunk[1] | chunk[2] | chunk[3], std::byte{0});
  EXPECT_TRUE(provable.matches(chunk, 3, L1Id::of(1, 0x345)));
  EXPECT_FALSE(provable.matches(chunk, 3, L1Id::of(1, 0x445)));
}

INSTANTIATE_TEST_SUITE_P(Sizes, ProvablePayload, ::testing::Values(1, 7, 8, 11, 12, 13, 16, 40, 41, 5000));

}  // namespace
