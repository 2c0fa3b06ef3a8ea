#include "formats/block_encoder.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace {

using namespace rodeo::formats;

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (const int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

std::vector<std::byte> slice(std::span<const std::byte> from, std::size_t offset, std::size_t size) {
  const auto part = from.subspan(offset, size);
  return {part.begin(), part.end()};
}

TEST(BlockEncoder, WritesTheWorkedExampleOfTheSpecification) {
  BlockEncoder encoder({BlockFamily::trailer16, 1024}, 0x054, 2);
  std::array<std::byte, 1024> first, second;
  encoder.begin(first);
  std::vector<std::byte> chunk(1021, std::byte{0x77});
  chunk[1018] = std::byte{0x11};
  chunk[1019] = std::byte{0x22};
  chunk[1020] = std::byte{0x33};
  std::span<const std::byte> rest = chunk;
  EXPECT_FALSE(encoder.push(rest));
  EXPECT_TRUE(encoder.full());
  EXPECT_TRUE(encoder.in_chunk());
  EXPECT_EQ(slice(first, 0, 5), bytes({0x54, 0x10, 0xcd, 0xab, 0x77}));
  EXPECT_EQ(slice(first, 1022, 2), bytes({0xfa, 0x23}));

  second.fill(std::byte{0xff});
  encoder.begin(second);
  EXPECT_TRUE(encoder.push(rest));
  const auto whole = bytes({0xaa, 0xbb, 0xcc, 0xdd});
  rest = whole;
  EXPECT_TRUE(encoder.push(rest));
  encoder.timeout();
  EXPECT_TRUE(encoder.full());
  EXPECT_EQ(slice(second, 0, 17),
            bytes({0x54, 0x18, 0xcd, 0xab, 0x11, 0x22, 0x33, 0x00, 0x03, 0x40, 0xaa, 0xbb, 0xcc, 0xdd, 0x04, 0x60, 0x00}));
  EXPECT_EQ(slice(second, 1021, 3), bytes({0x00, 0xee, 0xa3}));
}

TEST(BlockEncoder, ThirtyTwoBitTrailersPadToFourAndCarryAllFlags) {
  BlockEncoder encoder({BlockFamily::phase2, 2048}, 0x7ff, 31);
  std::vector<std::byte> block(2048);
  encoder.begin(block);
  const auto chunk = bytes({1, 2, 3, 4, 5});
  std::span<const std::byte> rest = chunk;
  EXPECT_TRUE(encoder.push(rest, rodeo::chunk_status::kBusy | rodeo::chunk_status::kFirmwareCrc));
  encoder.null_fill();
  EXPECT_EQ(slice(block, 0, 16), bytes({0xff, 0xff, 0xce, 0xc1, 1, 2, 3, 4, 5, 0, 0, 0, 5, 0, 0, 0x66}));
  EXPECT_TRUE(encoder.full());
}

TEST(BlockEncoder, RoomForOneTrailerIsClosedWithANullTrailer) {
  BlockEncoder encoder({BlockFamily::trailer16, 1024}, 1);
  std::array<std::byte, 1024> block;
  encoder.begin(block);
  const std::vector<std::byte> chunk(1016, std::byte{1});
  std::span<const std::byte> rest = chunk;
  EXPECT_TRUE(encoder.push(rest));
  EXPECT_TRUE(encoder.full());
  EXPECT_EQ(slice(block, 1020, 4), bytes({0xf8, 0x63, 0, 0}));
}

TEST(BlockEncoder, SequenceNumbersWrapAtThirtyTwo) {
  BlockEncoder encoder({BlockFamily::trailer32, 1024}, 5, 30);
  std::array<std::byte, 1024> block;
  for (const std::uint32_t expected : {30U, 31U, 0U, 1U}) {
    encoder.begin(block);
    encoder.timeout();
    const BlockHeader header = BlockHeader::read(block.data());
    EXPECT_EQ(header.sequence(), expected);
    EXPECT_EQ(header.elink(), 5);
    EXPECT_EQ(header.marker(), 0xabce);
  }
}

TEST(BlockFormat, MarkersNameFamilyAndSize) {
  for (std::uint32_t n = 1; n <= 64; ++n) {
    const BlockFormat format{BlockFamily::phase2, n * 1024};
    EXPECT_TRUE(format.valid());
    EXPECT_EQ(BlockFormat::of_marker(format.marker()), format);
  }
  EXPECT_EQ((BlockFormat{BlockFamily::phase2, 2048}.marker()), 0xc1ce);
  EXPECT_EQ(BlockFormat::of_marker(0xabcd)->trailer_bytes(), 2U);
  EXPECT_EQ(BlockFormat::of_marker(0xabce)->trailer_bytes(), 4U);
  EXPECT_FALSE(BlockFormat::of_marker(0).has_value());
  EXPECT_FALSE((BlockFormat{BlockFamily::trailer16, 2048}.valid()));
  EXPECT_FALSE((BlockFormat{BlockFamily::phase2, 65 * 1024}.valid()));
  EXPECT_FALSE((BlockFormat{BlockFamily::trailer32, 1000}.valid()));
}

}  // namespace
