// The slots of a publisher's pages, from full to acknowledged.
#include "transport/subscription.h"

#include <gtest/gtest.h>

#include <vector>

namespace rodeo::transport {
namespace {

class PageRings : public testing::Test {
 protected:
  static constexpr std::size_t kPageBytes = 4096;
  static constexpr std::uint32_t kSlots = 4;

  /// Fills and closes at most this number of pages, with one chunk each, while there are free slots.
  std::uint32_t fill(std::uint32_t most) {
    std::uint32_t filled = 0;
    for (; filled < most && ring_.writer() != nullptr; ++filled) {
      formats::RunPlace from;
      const ChunkRun run{.data = chunk_.data(), .size = 40, .stride = 40, .count = 1};
      EXPECT_TRUE(ring_.writer()->append(0, chunks_, run, from));
      ring_.close(0, ++chunks_);
    }
    return filled;
  }
  /// Gives all full pages to the network; returns their slots.
  std::vector<std::uint32_t> send_all() {
    std::vector<std::uint32_t> slots;
    for (auto page = ring_.next(); page; page = ring_.next()) {
      slots.push_back(page->slot);
      ring_.sending();
    }
    return slots;
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(kSlots * kPageBytes);
  std::vector<std::byte> chunk_ = std::vector<std::byte>(40);
  PageRing ring_{memory_, kPageBytes};
  std::uint32_t chunks_ = 0;
};

TEST_F(PageRings, ASlotIsFreeWhenTheSubscriberHasItsPageAndTheNetworkDoesNot) {
  EXPECT_EQ(fill(10), kSlots);
  EXPECT_EQ(send_all(), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  ring_.sent(0);
  ring_.sent(1);
  EXPECT_EQ(fill(10), 0U) << "sent, but not taken";
  EXPECT_TRUE(ring_.taken(3));
  EXPECT_EQ(ring_.filled(), 2U) << "the third is taken, but still on the network";
  EXPECT_EQ(ring_.taken_chunks(), 2U);
  EXPECT_EQ(fill(10), 2U);
  ring_.sent(2);
  EXPECT_EQ(ring_.taken_chunks(), 3U);
  EXPECT_EQ(fill(10), 1U);
}

TEST_F(PageRings, AfterABreakThatIsSentAgainWhichWasNotTaken) {
  fill(3);
  EXPECT_EQ(send_all().size(), 3U);
  ring_.sent(0);
  EXPECT_TRUE(ring_.taken(1));
  ring_.unsend();
  fill(1);
  EXPECT_EQ(send_all(), (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_FALSE(ring_.empty());
  EXPECT_TRUE(ring_.taken(4));
  for (const std::uint32_t slot : {1U, 2U, 3U}) ring_.sent(slot);
  EXPECT_TRUE(ring_.empty());
  EXPECT_EQ(ring_.taken_chunks(), 4U);
}

TEST_F(PageRings, WhatWasTakenMayBeSaidAfterTheBreak) {
  fill(4);
  send_all();
  ring_.unsend();
  EXPECT_TRUE(ring_.taken(3));
  EXPECT_EQ(ring_.taken_chunks(), 3U);
  EXPECT_EQ(send_all(), (std::vector<std::uint32_t>{3}));
}

TEST_F(PageRings, WhatWasNeverSentIsNotTaken) {
  fill(3);
  ring_.sending();
  EXPECT_FALSE(ring_.taken(2));
  EXPECT_TRUE(ring_.taken(1));
  EXPECT_TRUE(ring_.taken(0)) << "an old message, overtaken by one on another connection";
  EXPECT_EQ(ring_.taken_chunks(), 0U) << "the network still has it";
  ring_.sent(0);
  EXPECT_EQ(ring_.taken_chunks(), 1U);
}

}  // namespace
}  // namespace rodeo::transport
