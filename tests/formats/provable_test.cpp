#include "formats/provable.h"

#include <gtest/gtest.h>

#include <vector>

namespace {

using rodeo::L1Id;
using rodeo::formats::Provable;

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (const int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

// The bytes were computed from the specification by a program that shares nothing with ours.
TEST(ProvableExample, IsWrittenAsInTheSpecification) {
  std::vector<std::byte> chunk(21);
  Provable(7).write(chunk, 3, L1Id::of(1, 99));
  EXPECT_EQ(chunk, bytes({0x63, 0x00, 0x00, 0x01, 0xeb, 0x0d, 0x8a, 0xc5, 0xac, 0xfd, 0x29,
                          0xce, 0x71, 0x3f, 0x9b, 0x83, 0xc1, 0x79, 0x74, 0x4d, 0x2b}));
  chunk.resize(28);
  Provable(7, true).write(chunk, 3, L1Id::of(1, 99));
  EXPECT_EQ(chunk, bytes({0x63, 0x00, 0x00, 0x01, 0xeb, 0x0d, 0x8a, 0xc5, 0xac, 0xfd, 0x29, 0xce, 0x71, 0x3f,
                          0x9b, 0x83, 0xc1, 0x79, 0x74, 0x4d, 0x2b, 0xb9, 0xd2, 0x21, 0xb7, 0x7a, 0x36, 0x51}));
}

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

// Of chunks that are long enough to carry a key.
class ProvableKey : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ProvableKey, BelongsToOneLinkAndOneTrigger) {
  const Provable provable(7);
  std::vector<std::byte> chunk(GetParam());
  provable.write(chunk, 3, L1Id::of(1, 99));
  EXPECT_FALSE(provable.matches(chunk, 4, L1Id::of(1, 99)));
  EXPECT_FALSE(provable.matches(chunk, 3, L1Id::of(1, 100)));
  EXPECT_FALSE(Provable(8).matches(chunk, 3, L1Id::of(1, 99)));
}

TEST_P(ProvableKey, OfANarrowFormatCarriesTheLowBitsAndBelongsToTheWholeId) {
  const Provable provable(7, false, 8);
  std::vector<std::byte> chunk(GetParam());
  provable.write(chunk, 3, L1Id::of(1, 0x345));
  EXPECT_EQ(chunk[0], std::byte{0x45});
  EXPECT_EQ(chunk[1] | chunk[2] | chunk[3], std::byte{0});
  EXPECT_TRUE(provable.matches(chunk, 3, L1Id::of(1, 0x345)));
  EXPECT_FALSE(provable.matches(chunk, 3, L1Id::of(1, 0x445)));
}

INSTANTIATE_TEST_SUITE_P(Sizes, ProvablePayload, ::testing::Values(1, 7, 8, 11, 12, 13, 16, 40, 41, 5000));
INSTANTIATE_TEST_SUITE_P(Sizes, ProvableKey, ::testing::Values(12, 13, 16, 40, 41, 5000));

}  // namespace
