#include "formats/ttc_packet.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace {

using namespace rodeo::formats;
using rodeo::L1Id;

std::vector<std::byte> example() {
  std::vector<std::byte> bytes;
  for (const int byte : {0x02, 0x1a, 0xa3, 0x05, 0x45, 0x23, 0x01, 0x03, 0x0c, 0x0b, 0x0a, 0x00, 0x81,
                         0x00, 0x00, 0x00, 0x44, 0x33, 0x22, 0x11, 0xef, 0xbe, 0xad, 0xde, 0x00, 0x00}) {
    bytes.push_back(static_cast<std::byte>(byte));
  }
  return bytes;
}

TtcPacket example_packet() {
  TtcPacket packet;
  packet.l1id = L1Id::of(3, 0x012345);
  packet.bcid = 0x5a3;
  packet.trigger_type = 0x81;
  packet.orbit = 0x000a0b0c;
  packet.l0id = 0x11223344;
  packet.l1a_counter = 0xdeadbeef;
  return packet;
}

TEST(TtcPacket, IsWrittenAsInTheWorkedExample) {
  std::vector<std::byte> bytes(26, std::byte{0xff});
  EXPECT_EQ(example_packet().write(bytes), 26U);
  EXPECT_EQ(bytes, example());
}

TEST(TtcPacket, IsReadAsInTheWorkedExample) {
  const auto packet = TtcPacket::read(example());
  ASSERT_TRUE(packet.has_value());
  EXPECT_EQ(*packet, example_packet());
}

TEST(TtcPacket, EveryFormatComesBackAsWritten) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    TtcPacket packet;
    packet.l1id.value = static_cast<std::uint32_t>(random());
    packet.bcid = random() & 0xfff;
    packet.trigger_type = static_cast<std::uint16_t>(random());
    packet.orbit = static_cast<std::uint32_t>(random());
    packet.l0id = static_cast<std::uint32_t>(random());
    if (i % 3 != 0) packet.l1a_counter = random() >> 16;
    if (i % 3 == 2) packet.trigger_tag = static_cast<std::uint8_t>(random());
    std::vector<std::byte> bytes(packet.size_bytes());
    EXPECT_EQ(packet.write(bytes), bytes.size());
    EXPECT_EQ(bytes.size(), (std::array{20U, 26U, 27U}[i % 3]));
    EXPECT_EQ(TtcPacket::read(bytes), packet);
    if (i % 3 == 2) continue;
    bytes.pop_back();
    EXPECT_EQ(TtcPacket::read(bytes).error().fault, DecodeFault::truncated);
  }
}

TEST(TtcPacket, UnknownFormatsAreRefused) {
  auto bytes = example();
  for (const int format : {0, 4, 255}) {
    bytes[0] = static_cast<std::byte>(format);
    EXPECT_EQ(TtcPacket::read(bytes).error().fault, DecodeFault::unknown);
  }
  EXPECT_EQ(TtcPacket::read({}).error().fault, DecodeFault::truncated);
}

TEST(TtcTriggerExtractor, ReadsARunUpToTheFirstMalformedPacket) {
  constexpr std::uint32_t kStride = 28, kCount = 10;
  std::vector<std::byte> memory(kStride * kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    TtcPacket packet = example_packet();
    packet.l1id = L1Id::of(3, 100 + i);
    packet.bcid = static_cast<std::uint16_t>(i);
    packet.write(std::span{memory}.subspan(i * kStride, 26));
  }
  memory[7 * kStride] = std::byte{9};
  const rodeo::ChunkRun run{.data = memory.data(), .size = 26, .stride = kStride, .count = kCount};
  TtcTriggerExtractor extractor;
  std::array<std::uint32_t, kCount> l1ids{};
  std::array<std::uint16_t, kCount> bcids{};
  EXPECT_EQ(extractor.extract(run, 2, 8, l1ids.data(), bcids.data()), 5U);
  EXPECT_EQ(l1ids[0], L1Id::of(3, 102).value);
  EXPECT_EQ(bcids[4], 6);
  EXPECT_EQ(extractor.extract(run, 8, 2, l1ids.data(), bcids.data()), 2U);
  EXPECT_EQ(l1ids[1], L1Id::of(3, 109).value);
  EXPECT_EQ(extractor.trigger_type(run.chunk(0)), 0x81);
  EXPECT_TRUE(extractor.fields().has_ecr);
}

}  // namespace
