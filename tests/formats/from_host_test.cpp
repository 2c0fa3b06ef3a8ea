#include "formats/from_host.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <vector>

namespace rodeo::formats {
namespace {

using Bytes = std::vector<std::byte>;

std::span<const std::byte, kFromHostPacketBytes> packet_of(const Bytes& packets, std::size_t number) {
  return std::span(packets).subspan(number * kFromHostPacketBytes).first<kFromHostPacketBytes>();
}

TEST(FromHost, IsWrittenAsInTheWorkedExample) {
  const std::array message{std::byte{1}, std::byte{2}, std::byte{3}};
  for (const auto& [length, header] : {std::pair(FromHostLength::bytes, 0xe3), {FromHostLength::words, 0xe5}}) {
    Bytes expected(kFromHostPacketBytes);
    expected[27] = std::byte{3};
    expected[28] = std::byte{2};
    expected[29] = std::byte{1};
    expected[30] = static_cast<std::byte>(header);
    expected[31] = std::byte{0x1f};
    Bytes packets;
    append_from_host(packets, 0xff, message, length);
    EXPECT_EQ(packets, expected);
  }
}

TEST(FromHost, MessagesOfManyLinksComeBackAsTheyWereSent) {
  std::mt19937 random(1);
  for (const FromHostLength length : {FromHostLength::words, FromHostLength::bytes}) {
    // Interleaved packets of three links.
    std::map<std::uint16_t, std::vector<Bytes>> sent;
    std::array<Bytes, 3> packets;
    constexpr std::array<std::uint16_t, 3> kElinks{0, 0x3ff, 2047};
    for (std::size_t link = 0; link < kElinks.size(); ++link) {
      for (std::size_t bytes = 0; bytes < 100; ++bytes) {
        Bytes message(bytes);
        for (std::byte& byte : message) byte = static_cast<std::byte>(random());
        const std::size_t before = packets[link].size();
        append_from_host(packets[link], kElinks[link], message, length);
        EXPECT_EQ(packets[link].size() - before, from_host_packets(bytes) * kFromHostPacketBytes);
        if (length == FromHostLength::words && bytes % 2 == 1) message.emplace_back();
        sent[kElinks[link]].push_back(std::move(message));
      }
    }
    std::map<std::uint16_t, std::vector<Bytes>> taken;
    FromHostMessages messages(1000);
    std::array<std::size_t, 3> at{};
    for (;;) {
      std::vector<std::size_t> left;
      for (std::size_t link = 0; link < 3; ++link) {
        if (at[link] * kFromHostPacketBytes < packets[link].size()) left.push_back(link);
      }
      if (left.empty()) break;
      const std::size_t link = left[random() % left.size()];
      const auto packet = read_from_host(packet_of(packets[link], at[link]++), length);
      ASSERT_TRUE(packet) << packet.error().message();
      if (const auto message = messages.add(*packet)) taken[packet->elink].emplace_back(message->begin(), message->end());
    }
    EXPECT_EQ(taken, sent);
  }
}

TEST(FromHost, APacketThatGoesOnIsFull) {
  Bytes packets;
  append_from_host(packets, 1, Bytes(31), FromHostLength::words);
  ASSERT_EQ(packets.size(), 2 * kFromHostPacketBytes);
  packets[30] &= ~std::byte{2};  // 14 words
  const auto read = read_from_host(packet_of(packets, 0), FromHostLength::words);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().fault, DecodeFault::wrong_value);
}

TEST(FromHost, AMessageThatIsTooLongIsDroppedAndTheNextOneIsNot) {
  FromHostMessages messages(100);
  Bytes packets;
  append_from_host(packets, 5, Bytes(101, std::byte{1}), FromHostLength::bytes);
  append_from_host(packets, 5, Bytes(100, std::byte{2}), FromHostLength::bytes);
  std::vector<Bytes> taken;
  for (std::size_t i = 0; i < packets.size() / kFromHostPacketBytes; ++i) {
    const auto packet = read_from_host(packet_of(packets, i), FromHostLength::bytes);
    ASSERT_TRUE(packet);
    if (const auto message = messages.add(*packet)) taken.emplace_back(message->begin(), message->end());
    if (i == 1) {
      EXPECT_EQ(messages.begun(5), 60U);
    }
  }
  EXPECT_EQ(taken, std::vector<Bytes>{Bytes(100, std::byte{2})});
  EXPECT_EQ(messages.too_long(), 1U);
  EXPECT_EQ(messages.begun(5), 0U);
}

}  // namespace
}  // namespace rodeo::formats
