#include "formats/provable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

namespace {

using rodeo::L1Id;
using rodeo::formats::Provable;

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (const int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

// An independent program computed these bytes from the specification.
TEST(ProvableExample, IsWrittenAsInTheSpecification) {
  std::vector<std::byte> chunk(21);
  Provable(7).write(chunk, 3, L1Id::of(1, 99));
  EXPECT_EQ(chunk, bytes({0x63, 0x00, 0x00, 0x01, 0xeb, 0x0d, 0x8a, 0xc6, 0xc1, 0xfd, 0x29,
                          0xce, 0x71, 0x3f, 0x9b, 0x83, 0xc1, 0x79, 0x74, 0x4d, 0x2b}));
  chunk.resize(12);
  Provable(7).write(chunk, 3, L1Id::of(1, 99));
  EXPECT_EQ(chunk, bytes({0x63, 0x00, 0x00, 0x01, 0xeb, 0x0d, 0x8a, 0xdc, 0xb8, 0xfd, 0x29, 0xce}));
  chunk.resize(28);
  Provable(7, true).write(chunk, 3, L1Id::of(1, 99));
  EXPECT_EQ(chunk, bytes({0x63, 0x00, 0x00, 0x01, 0xeb, 0x0d, 0x8a, 0xc6, 0xc8, 0xfd, 0x29, 0xce, 0x71, 0x3f,
                          0x9b, 0x83, 0xc1, 0x79, 0x74, 0x4d, 0x2b, 0xb9, 0xd2, 0x21, 0x33, 0xe0, 0xdc, 0xef}));
}

TEST(ProvableExample, OfAnEarlierVersionMatchesAsBefore) {
  std::vector<std::byte> chunk = bytes({0x63, 0x00, 0x00, 0x01, 0xeb, 0x0d, 0x8a, 0xc5, 0xac, 0xfd, 0x29,
                                        0xce, 0x71, 0x3f, 0x9b, 0x83, 0xc1, 0x79, 0x74, 0x4d, 0x2b});
  EXPECT_TRUE(Provable(7).matches(chunk, 3, L1Id::of(1, 99)));
  EXPECT_FALSE(Provable(7).matches(chunk, 4, L1Id::of(1, 99)));
  chunk = bytes({0x63, 0x00, 0x00, 0x01, 0xeb, 0x0d, 0x8a, 0xc5, 0xac, 0xfd, 0x29, 0xce, 0x71, 0x3f,
                 0x9b, 0x83, 0xc1, 0x79, 0x74, 0x4d, 0x2b, 0xb9, 0xd2, 0x21, 0xb7, 0x7a, 0x36, 0x51});
  EXPECT_TRUE(Provable(7, true).matches(chunk, 3, L1Id::of(1, 99)));
}

TEST(ProvableLength, TheBeginningOfAChunkNeverMatches) {
  for (const std::size_t whole : {8, 9, 12, 15, 16, 17, 24, 40, 264, 271, 272, 5000}) {
    const Provable provable(7);
    std::vector<std::byte> chunk(whole);
    provable.write(chunk, 3, L1Id::of(1, 99));
    ASSERT_TRUE(provable.matches(chunk, 3, L1Id::of(1, 99)));
    for (std::size_t size = 0; size < whole; ++size)
      EXPECT_FALSE(provable.matches(std::span(chunk).first(size), 3, L1Id::of(1, 99))) << size << " of " << whole;
  }
}

TEST(ProvableLength, AChunkThatGoesOnAsALongerOneWouldDoesNotMatch) {
  const Provable provable(7);
  for (std::size_t longer = 10; longer < 300; ++longer) {
    std::vector<std::byte> chunk(longer);
    provable.write(chunk, 3, L1Id::of(1, 99));
    std::vector<std::byte> shorter(longer - 1);
    provable.write(shorter, 3, L1Id::of(1, 99));
    std::copy(shorter.begin(), shorter.end(), chunk.begin());
    EXPECT_FALSE(provable.matches(chunk, 3, L1Id::of(1, 99))) << longer;
  }
}

TEST(ProvableLength, AChunkThatASourceCutsDeclaresTheWhole) {
  const Provable provable(7);
  const L1Id l1id = L1Id::of(1, 99);
  std::vector<std::byte> whole(200);
  provable.write(whole, 3, l1id);
  std::vector<std::byte> cut(77);
  Provable::fill(cut.data(), cut.size(), provable.header(l1id), provable.key(3, l1id), whole.size());
  EXPECT_TRUE(std::equal(cut.begin(), cut.end(), whole.begin()));
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

// For chunks that are long enough to have a key.
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

INSTANTIATE_TEST_SUITE_P(Sizes, ProvablePayload, ::testing::Values(8, 11, 12, 13, 16, 40, 41, 5000));
INSTANTIATE_TEST_SUITE_P(Sizes, ProvableKey, ::testing::Values(12, 13, 16, 40, 41, 5000));

}  // namespace
